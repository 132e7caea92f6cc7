"""Runs the shared cases of OpenAI chat and Anthropic through `parse`, whole and byte by byte, and checks what they say.

Reads `$SEMFLUX_SHARED/cases/inputs.jsonl` (default: `../shared` beside the repository). What each case must come to is
written here, by its id; the words of the case are its `expect`. Prints "N of M cases pass" and exits with 1 if one
fails, or if a case of these dialects is neither here nor among those that are left out.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import semflux  # noqa: E402  # the path is set above
from semflux.contract import violations_of  # noqa: E402  # the path is set above
from semflux.errors import QuotaExceededError, TruncatedStreamError  # noqa: E402  # the path is set above
from semflux.frozen import thaw  # noqa: E402  # the path is set above

SHARED = Path(os.environ.get("SEMFLUX_SHARED", ROOT.parent / "shared"))

LEFT_OUT = {
    "B023": "needs a second step",
    "B083": "needs an encoder",
    "B099": "needs a retry",
}
DIALECTS = {"openai-chat": "openai-chat", "openai-chat (azure)": "openai-chat", "anthropic": "anthropic"}


class Run:
    """What a subscriber saw."""

    def __init__(self, chunks: list[bytes], dialect: str) -> None:
        self.events: list[Any] = []
        self.errors: list[Exception] = []
        self.completed = 0
        semflux.parse(chunks, dialect=dialect).subscribe(
            self.events.append, self.errors.append, self._complete
        )

    def _complete(self) -> None:
        self.completed += 1

    @property
    def response(self) -> Any:
        return self.events[-1].response

    def texts(self, event_type: str) -> list[str]:
        return [event.text for event in self.events if event.type == event_type]

    def count(self, event_type: str) -> int:
        return sum(event.type == event_type for event in self.events)

    def facts(self) -> dict[str, Any]:
        """All that a case may ask about."""
        response, usage = self.response, self.events[-1].usage
        return {
            "terminal": str(self.events[-1].type),
            "error": type(self.errors[0]) if self.errors else None,
            "deltas": self.texts("TEXT_DELTA"),
            "text": response.text,
            "thinking": response.thinking,
            "refusal": response.refusal,
            "calls": [(call.id, call.name, thaw(call.arguments)) for call in response.tool_calls],
            "finish": response.finish_reason,
            "said": response.provider_finish_reason,
            "usage": None if usage is None else (usage.input_tokens, usage.output_tokens, usage.total_tokens),
            "repairs": dict(response.repairs.repairs),
        }

    def faults(self) -> list[str]:
        """What is wrong with any stream."""
        found = [str(violation) for violation in violations_of(self.events)]
        if self.completed + len(self.errors) != 1:
            found.append("not exactly one end")
        if self.errors and self.events[-1].error is not self.errors[0]:
            found.append("ERROR and on_error differ")
        return found

    def meaning(self) -> Any:
        """What must not depend on the cut."""
        shown = [(str(e.type), e.text, e.tool_call_id, e.item_id, e.index, e.step) for e in self.events]
        return shown, json.dumps({**self.response.to_dict(), "response_id": ""}, sort_keys=True)


Check = Callable[[Run], bool]
Want = tuple[dict[str, Any], list[Check]]


def ok(*checks: Check, **facts: Any) -> Want:
    """A stream that ends well, without repairs unless they are given."""
    return {"terminal": "RESPONSE_END", "error": None, "finish": "stop", "repairs": {}, **facts}, list(checks)


def fails(error: type[Exception], *checks: Check, **facts: Any) -> Want:
    """A stream that fails."""
    return {"terminal": "ERROR", "error": error, "finish": None, **facts}, list(checks)


def none_of(*types: str) -> Check:
    """No event of these types."""
    return lambda run: not any(run.count(event_type) for event_type in types)


def one_call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """Exactly this call."""
    return {"calls": [(id, name, arguments)], "finish": "tool_calls"}


def usage_detail(**fields: int) -> Check:
    """These fields of the usage of the end."""
    return lambda run: all(getattr(run.events[-1].usage, name) == value for name, value in fields.items())


def parts(*kinds: str) -> Check:
    """The kinds of the parts of the assistant message."""
    return lambda run: [part["type"] for part in run.response.message.to_dict()["parts"]] == list(kinds)


def partial_step(run: Run) -> bool:
    ends = [event for event in run.events if event.type == "STEP_END"]
    return len(ends) == 1 and bool(ends[0].attributes.get("partial")) and run.response.partial


def usage_on_both_ends(run: Run) -> bool:
    ends = [event.usage for event in run.events if event.type in {"STEP_END", "RESPONSE_END"}]
    return len(ends) == 2 and ends[0] == ends[1] is not None


def args_carry_their_call(run: Run) -> bool:
    args = [(e.tool_call_id, e.text) for e in run.events if e.type == "TOOL_CALL_ARGS_DELTA"]
    return args == [("a", '{"x":'), ("b", '{"y":'), ("a", "1}"), ("b", "2}")]


def text_starts_with_x(run: Run) -> bool:
    return [str(event.type) for event in run.events[:4]] == [
        "RESPONSE_START",
        "STEP_START",
        "TEXT_START",
        "TEXT_DELTA",
    ]


def one_citation(run: Run) -> bool:
    found = [(c.url, c.title, c.start, c.end) for c in run.response.citations]
    return found == [("https://a.example/", "A", 0, 6)] and run.count("CITATION") == 1


def log_probabilities(run: Run) -> bool:
    on_deltas = [len(event.attributes["logprobs"]) for event in run.events if event.type == "TEXT_DELTA"]
    return on_deltas == [1, 1] and [entry["token"] for entry in run.response.logprobs] == ["a", "b"]


def other_choice(run: Run) -> bool:
    choices = [event for event in run.events if event.type == "CUSTOM" and event.sub_type == "choice"]
    text = "".join([event.raw["delta"].get("content", "") for event in choices])
    return (
        text == "Bb"
        and {event.index for event in choices} == {1}
        and choices[-1].raw["finish_reason"] == "length"
    )


def known_id(run: Run) -> bool:
    return (run.response.provider_response_id, run.response.model) == ("c1", "m")


WANT: dict[str, Want] = {
    "B001": ok(deltas=["ab"]),
    "B003": ok(deltas=["a\u2028b\u0085c"]),
    "B005": ok(text="天🌧"),
    "B009": ok(deltas=["k"]),
    "B011": ok(text="ok"),
    "B015": ok(usage_on_both_ends, text="hi", usage=(4, 1, 5)),
    "B017": ok(
        usage_detail(uncached_tokens=4, cache_read_tokens=96, cache_write_tokens=0),
        text="a",
        usage=(100, 7, 107),
        said="end_turn",
    ),
    "B021": ok(
        usage_detail(cache_read_tokens=900, uncached_tokens=100, reasoning_tokens=3),
        text="a",
        usage=(1000, 5, 1005),
    ),
    "B025": ok(calls=[("a1", "get", {"k": 1}), ("a2", "get", {"k": 2})], finish="tool_calls"),
    "B027": ok(**one_call("g1", "look", q="x")),
    "B029": ok(**one_call("t9", "add", n=2)),
    "B031": ok(**one_call("t1", "f", a=1), repairs={"repeated_arguments": 1}),
    "B033": ok(**one_call("t1", "f", a=1)),
    "B035": ok(**one_call("t1", "now")),
    "B037": ok(
        args_carry_their_call, calls=[("a", "f", {"x": 1}), ("b", "g", {"y": 2})], finish="tool_calls"
    ),
    "B039": ok(none_of("TOOL_CALL_START"), text="ab"),
    "B041": fails(TruncatedStreamError, partial_step, calls=[("t1", "rm", {"path": "/tmp/x"})]),
    "B043": ok(text="42", thinking="hm ok"),
    "B045": ok(text="b", thinking="a"),
    "B047": ok(
        lambda run: (
            run.texts("THINKING_SIGNATURE") == ["SIG=="] and run.texts("THINKING_REDACTED") == ["R=="]
        ),
        parts("thinking", "redacted_thinking", "tool_call"),
        **one_call("u", "f"),
        thinking="t",
        said="tool_use",
    ),
    "B049": ok(text_starts_with_x, deltas=["x"]),
    "B051": fails(TruncatedStreamError, partial_step, text="trunc"),
    "B053": ok(**one_call("t1", "f"), text="Let me.", said="stop"),
    "B055": ok(text="almost all"),
    "B057": fails(
        QuotaExceededError,
        partial_step,
        lambda run: getattr(run.errors[0], "status", None) == 429,
        text="par",
    ),
    "B065": ok(known_id, text="a"),
    "B069": ok(
        none_of("TEXT_START", "TEXT_DELTA"),
        lambda run: run.texts("REFUSAL_DELTA") == ["I can", "not."],
        refusal="I cannot.",
        finish="refusal",
        said="stop",
    ),
    "B071": ok(one_citation, text="See A."),
    "B073": ok(log_probabilities, text="ab"),
    "B075": ok(other_choice, text="Aa", usage=(2, 4, 6)),
    "B079": ok(lambda run: (run.count("RAW"), run.count("HEARTBEAT")) == (4, 1), text="ok", said="end_turn"),
    "B101": ok(lambda run: all((event.text or "").encode() is not None for event in run.events), text="a😀b"),
    "B111": ok(text='{"items":[{"n":1},{"n":2}]}'),
}


def check(row: dict[str, Any]) -> list[str]:
    """What is wrong with a case."""
    chunks = [base64.b64decode(chunk) for chunk in row["chunks"]]
    data, dialect = b"".join(chunks), DIALECTS[row["dialect"]]
    facts, checks = WANT[row["id"]]
    found: list[str] = []
    runs = {
        "in its chunks": chunks,
        "whole": [data],
        "byte by byte": [data[i : i + 1] for i in range(len(data))],
    }
    meanings = set()
    for name, pieces in runs.items():
        run = Run(pieces, dialect)
        got = run.facts()
        faults = [
            f"{key} is {got[key]!r}, not {value!r}" for key, value in facts.items() if got[key] != value
        ]
        faults += [f"{getattr(item, '__name__', item)} does not hold" for item in checks if not item(run)]
        found += [f"{name}: {fault}" for fault in [*faults, *run.faults()]]
        meanings.add(repr(run.meaning()))
    if len(meanings) != 1:
        found.append("the events differ with the cut of the bytes")
    return found


def main() -> int:
    """Run all cases."""
    total = passed = 0
    known = True
    with (SHARED / "cases" / "inputs.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        if row["id"] in LEFT_OUT or row["dialect"] not in DIALECTS:
            reason = LEFT_OUT.get(row["id"], f"dialect {row['dialect']}")
            print(f"{row['id']} {row['kind']}: left out, {reason}")
        elif row["id"] not in WANT:
            known = False
            print(f"{row['id']} {row['kind']}: nothing is said here about it")
        else:
            total += 1
            found = check(row)
            passed += not found
            for fault in found:
                print(f"{row['id']} {row['kind']}: {fault}")
    print(f"{passed} of {total} cases pass")
    return 0 if known and passed == total else 1


if __name__ == "__main__":
    sys.exit(main())
