"""The documentation is true: its examples run, its lists are those of the code, its links lead somewhere.

Every fenced `python` block of README.md and docs/*.md is executed, page by page, top to bottom, in one
namespace a page. A block with `await` outside of a function runs in a loop of the page; the others run
without one. A `text` block right after it is what it prints. Nothing reaches the network: models get the
answers of `ANSWERS`, and the files that pages read are in the current folder.

Generated parts stand between `<!-- generated: NAME -->` and `<!-- end -->`; the pictures in docs/marbles are
drawn from runs of the operators (docs_marbles.py). After a change of the code: `python -m tests.test_docs` in the
project's folder writes them anew.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import semflux
from semflux import errors as errors_module
from semflux import local
from semflux.cli.command import _parser
from semflux.dialects.vendors import VENDORS
from semflux.events import EVENT_CLASSES, ChatEvent, ChatEventGroup
from semflux.events import classes as classes_module
from semflux.http import HttpRequest
from semflux.operators.hooks import Hooks
from semflux.transport.base import Exchange, Transport
from semflux.transport.replay import Recording, ReplayTransport
from tests.docs_marbles import PICTURES, Picture
from tests.frames import DONE, an, cc, cu, tc

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

OPENAI = b"".join(
    [
        cc({"role": "assistant", "content": ""}),
        *[cc({"content": piece}) for piece in ("Blue light", " is scattered", " more.")],
        cc(finish="stop"),
        cu(12, 6),
        DONE,
    ]
)
"""An answer in the format of OpenAI chat: three pieces of text."""

ANTHROPIC = b"".join(
    [
        an(
            "message_start",
            message={
                "id": "msg_1",
                "type": "message",
                "model": "claude",
                "content": [],
                "usage": {"input_tokens": 12, "output_tokens": 1},
            },
        ),
        an("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
        an("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "Rayleigh."}),
        an("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "c2ln"}),
        an("content_block_stop", index=0),
        an("content_block_start", index=1, content_block={"type": "text", "text": ""}),
        an("content_block_delta", index=1, delta={"type": "text_delta", "text": "Blue light"}),
        an("content_block_delta", index=1, delta={"type": "text_delta", "text": " is scattered more."}),
        an("content_block_stop", index=1),
        an("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9}),
        an("message_stop"),
    ]
)
"""The same in Anthropic's, with thinking before it."""

ANSWERS = {"/messages": ANTHROPIC, "/chat/completions": OPENAI}
"""What the providers of the examples answer, by the end of the path they are asked at."""

FILES = {
    "capture.sse": OPENAI,
    "anthropic.sse": ANTHROPIC,
    "cut.sse": OPENAI[: len(OPENAI) // 2],
    "no-done.sse": OPENAI.removesuffix(DONE),
    "calls.sse": cc(tc(0, "call_1", "weather", '{"city":'))
    + cc(tc(0, args=' "Oslo"}'))
    + cc(finish="tool_calls")
    + DONE,
    "tagged.sse": cc({"content": "<think>hmm</think>Yes."}) + cc(finish="stop") + DONE,
    "overloaded.sse": an("error", error={"type": "overloaded_error", "message": "Overloaded"}),
}
"""What the pages read."""


class Providers(Transport):
    """Every provider there is, from memory."""

    def __init__(self) -> None:
        self._replays = {
            path: ReplayTransport(Recording(body=(answer,)), repeat=True) for path, answer in ANSWERS.items()
        }

    async def open(self, request: HttpRequest, **options: Any) -> Exchange:
        path = request.url.partition("?")[0]
        return await next(r for end, r in self._replays.items() if path.endswith(end)).open(
            request, **options
        )

    async def aclose(self) -> None:
        for replay in self._replays.values():
            await replay.aclose()

    @property
    def acquired(self) -> int:
        return sum(replay.acquired for replay in self._replays.values())


class Example(NamedTuple):
    line: int
    code: str
    prints: str | None
    """What it must print; None: anything."""


_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples_of(page: Path) -> Iterator[Example]:
    text = page.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        if block[1] != "python":
            continue
        follows = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
        line = text.count("\n", 0, block.start()) + 2
        yield Example(line, block[2], after[2] if after is not None and follows else None)


def shown(text: str) -> list[str]:
    """Its lines without the blanks at their ends, which a page does not show."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Providers]:
    """Files to read, keys in the environment, providers that answer; what examples register goes again."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    for vendor in VENDORS.values():
        for variable in vendor.env_keys:
            monkeypatch.setenv(variable, "key-from-the-environment")
        for variable in vendor.env_base_urls:
            monkeypatch.delenv(variable, raising=False)
    providers = Providers()
    monkeypatch.setattr("semflux.model.AiohttpTransport", lambda: providers)
    monkeypatch.setattr(
        local, "start", lambda model: SimpleNamespace(base_url="http://127.0.0.1:9", api_key="key")
    )
    dialects = dict(semflux.DIALECTS)
    yield providers
    semflux.DIALECTS.clear()
    semflux.DIALECTS.update(dialects)
    Hooks.on_error_dropped(None)
    Hooks.on_next_dropped(None)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_example_runs_and_prints_what_the_page_says(page: Path, world: Providers) -> None:
    namespace: dict[str, Any] = {"__name__": "example"}
    with asyncio.Runner() as runner:
        for example in examples_of(page):
            # The line numbers of a failure are those of the page.
            code = compile(
                "\n" * (example.line - 1) + example.code,
                page.name,
                "exec",
                flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            )
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                if code.co_flags & inspect.CO_COROUTINE:
                    coroutine: Any = eval(code, namespace)
                    runner.run(coroutine)
                else:
                    exec(code, namespace)
            if example.prints is not None:
                assert shown(example.prints) == shown(printed.getvalue()), f"{page.name}:{example.line}"
    assert world.acquired == 0


def test_there_are_examples() -> None:
    """The patterns above find them."""
    counts = {page.name: len(list(examples_of(page))) for page in PAGES}
    for name in ("README.md", "getting-started.md", "events.md", "streams.md", "errors.md", "dialects.md"):
        assert counts[name] >= 2, name


@pytest.mark.xdist_group("local")
def test_the_first_example_of_the_readme_runs_on_the_real_model(
    local_server: local.LocalServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word for word, but for the length of the answer."""
    example = next(examples_of(ROOT / "README.md"))
    short = example.code.replace(".stream()", ".options(max_tokens=12).stream()")
    assert short != example.code
    exec(compile(short, "README.md", "exec"), {"__name__": "example"})
    assert "output_tokens" in capsys.readouterr().out


# Generated parts


def field_docs() -> dict[str, dict[str, str]]:
    """What stands under the fields of each event class."""
    found: dict[str, dict[str, str]] = {}
    tree = ast.parse(Path(str(classes_module.__file__)).read_text(encoding="utf-8"))
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        fields: dict[str, str] = {}
        for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                told = (
                    after.value.value
                    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                    else ""
                )
                fields[statement.target.id] = " ".join(str(told).split())
        found[node.name] = fields
    return found


def own_fields(cls: type[ChatEvent]) -> list[str]:
    common = {field.name for field in ChatEvent.__attrs_attrs__}
    return [field.name for field in cls.__attrs_attrs__ if field.name not in common]


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def events_table() -> str:
    docs = field_docs()
    lines: list[str] = []
    for group in ChatEventGroup:
        lines += [
            "",
            f"### {group.value}",
            "",
            "| Type, class | Phase | It says | It carries |",
            "|---|---|---|---|",
        ]
        for type_, cls in EVENT_CLASSES.items():
            if type_.group is not group:
                continue
            says = " ".join(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].split())
            carries = "<br>".join(
                [
                    f"`{name}`: {docs[cls.__name__][name]}" if docs[cls.__name__].get(name) else f"`{name}`"
                    for name in own_fields(cls)
                ]
            )
            lines.append(
                f"| {type_.value}, `{cls.__name__}` | {type_.phase.value} | {cell(says)} | {cell(carries)} |"
            )
    return "\n".join(lines[1:])


def vendors_table() -> str:
    lines = ["| Model | Dialect | Key, read by `from_env` | Address |", "|---|---|---|---|"]
    for prefix, vendor in VENDORS.items():
        key = " or ".join([f"`{name}`" for name in vendor.env_keys]) or "none"
        if vendor.env_keys and not vendor.key_required:
            key += ", if the server wants one"
        address = vendor.base_url or ("started on first use" if prefix == "local" else "yours: `base_url=`")
        if vendor.env_base_urls:
            address += f", or {' or '.join([f'`{name}`' for name in vendor.env_base_urls])}"
        name = "`local`, `local:FILE.gguf`" if prefix == "local" else f"`{prefix}:NAME`"
        lines.append(f"| {name} | {vendor.dialect} | {key} | {address} |")
    return "\n".join(lines)


def dialects_table() -> str:
    lines = ["| Name | What | Framing | End marker |", "|---|---|---|---|"]
    lines += [
        f"| `{d.name}` | {d.title} | {d.framing} | {f'`{d.end_marker.decode()}`' if d.end_marker else 'an event'} |"
        for d in semflux.DIALECTS.values()
    ]
    return "\n".join(lines)


def errors_tree() -> str:
    drawn = inspect.cleandoc(errors_module.__doc__ or "").split("```")[1].strip("\n")
    lines = ["| Class | When | `kind` | Worth retrying |", "|---|---|---|---|"]
    for name, cls in errors_module.ERROR_CLASSES.items():
        said = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
        retry = "yes" if cls.default_retryable else "no"
        lines.append(f"| `{name}` | {cell(said)} | {cls.default_kind} | {retry} |")
    return f"```text\n{textwrap.dedent(drawn)}\n```\n\n" + "\n".join(lines)


STREAMS = (semflux.ChatStream, semflux.Flux, semflux.Mono)


def members_of(cls: type) -> dict[str, Any]:
    """The methods of a class and of the mixins it is made of, its own first."""
    found: dict[str, Any] = {}
    for each in cls.__mro__:
        if each.__module__.startswith("semflux.flux"):
            for name, member in vars(each).items():
                found.setdefault(name, member)
    return found


def methods() -> Iterator[tuple[type, str, Any]]:
    """The public methods of streams: the class that has it first, the name, the function. One that Mono has in a form
    of its own comes twice."""
    seen: set[Any] = set()
    for cls in STREAMS:
        for name, member in members_of(cls).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not name.startswith("_") and inspect.isfunction(function) and function not in seen:
                seen.add(function)
                yield cls, name, function


def operators_table() -> str:
    lines = ["| Method | On | Gives | What |", "|---|---|---|---|"]
    for cls, name, function in methods():
        owners = [c.__name__ for c in STREAMS if members_of(c).get(name) is members_of(cls)[name]]
        gives = str(inspect.signature(function).return_annotation).replace("Self", "the same")
        said = inspect.cleandoc(inspect.getdoc(getattr(cls, name)) or "").split("\n\n")[0]
        lines.append(f"| `{name}` | {', '.join(owners)} | `{cell(gives)}` | {cell(' '.join(said.split()))} |")
    return "\n".join(lines)


def limits_table() -> str:
    tree = ast.parse(inspect.getsource(semflux.Limits))
    (node,) = tree.body
    assert isinstance(node, ast.ClassDef)
    lines = ["| Field | Default | What it bounds |", "|---|---|---|"]
    for statement, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            assert isinstance(after, ast.Expr)
            assert isinstance(after.value, ast.Constant)
            name = statement.target.id
            said = " ".join(str(after.value.value).split())
            lines.append(f"| `{name}` | {getattr(semflux.Limits(), name):,} | {said} |")
    return "\n".join(lines)


GENERATED: dict[str, Callable[[], str]] = {
    "events": events_table,
    "vendors": vendors_table,
    "dialects": dialects_table,
    "errors": errors_tree,
    "operators": operators_table,
    "limits": limits_table,
}

_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def regenerated(text: str) -> str:
    """The page *text* with its generated parts as the code has them."""
    return _PART.sub(lambda part: f"{part[1]}{GENERATED[part[2]]()}\n{part[3]}", text)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_generated_parts_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert regenerated(text) == text, "run: python -m tests.test_docs"


def test_each_list_is_on_some_page() -> None:
    parts = {part[2] for page in PAGES for part in _PART.finditer(page.read_text(encoding="utf-8"))}
    assert parts == set(GENERATED)


# Which operator

CHOICE = ROOT / "docs" / "which-operator.md"
DRAWN = ROOT / "docs" / "marbles"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_operator_does(name: str) -> None:
    file = DRAWN / f"{name}.svg"
    assert file.is_file(), "run: python -m tests.test_docs"
    assert PICTURES[name].svg() == file.read_text(encoding="utf-8"), "run: python -m tests.test_docs"


def test_every_picture_is_on_the_page_and_no_other_is_kept() -> None:
    text = CHOICE.read_text(encoding="utf-8")
    assert set(PICTURES) == {file.stem for file in DRAWN.iterdir()}
    assert [name for name in PICTURES if f"](marbles/{name}.svg)" not in text] == []


def named_on(text: str) -> set[str]:
    """The names that stand in code on a page: `take`, `take(2)`, `flux.take(2)`; in its examples `.take(2)`."""
    names: set[str] = set()
    for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", _BLOCK.sub("", text)):
        names |= set(re.findall(r"(?:^|[.\s])(\w+)(?=\(|$|,)", span))
    for block in _BLOCK.finditer(text):
        names |= set(re.findall(r"\.(\w+)\(", block[2]))
    return names


def test_every_operator_is_on_the_page_of_choice() -> None:
    """All of `semflux.operators`, and all methods of streams: a new one needs an intent."""
    operators = [name.rstrip("_") for name in semflux.operators.__all__ if name[0].islower()]
    wanted = {*operators, *[name for _, name, _ in methods()]}
    assert sorted(wanted - named_on(CHOICE.read_text(encoding="utf-8"))) == []


def test_a_picture_runs_the_call_that_it_shows() -> None:
    wrong = Picture("no_such_operator()", ("--1|",))
    with pytest.raises(AttributeError, match="no_such_operator"):
        wrong.svg()


# The rest


def test_the_readme_names_every_event_type() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [type_ for type_ in EVENT_CLASSES if type_.value not in text] == []


def test_every_option_of_the_command_is_described() -> None:
    """In docs/cli.md, as in `--help`."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    commands: Any = next(action for action in _parser()._actions if action.dest == "command")
    for name, parser in commands.choices.items():
        assert f"semflux {name}" in text
        options = [option for action in parser._actions for option in action.option_strings]
        assert [option for option in options if option.startswith("--") and option not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading in it."""
    text = page.read_text(encoding="utf-8")
    wrong: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        path = page if not file else page.parent / file
        headings = (
            re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE) if path.is_file() else []
        )
        anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        if not path.exists() or (anchor and anchor not in anchors):
            wrong.append(target)
    assert wrong == []


def test_every_page_is_on_the_map() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if page.name != "index.md" and f"({page.name})" not in text] == []


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(regenerated(each.read_text(encoding="utf-8")), encoding="utf-8")
    DRAWN.mkdir(exist_ok=True)
    for old in DRAWN.iterdir():
        old.unlink()
    for each_name, picture in PICTURES.items():
        (DRAWN / f"{each_name}.svg").write_text(picture.svg(), encoding="utf-8")
