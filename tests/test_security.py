"""Keys and prompts stay where they belong: on the wire to the provider, and nowhere else.

Each test plants a key and has a hostile server echo it in one way or another; then everything that a
program could show is searched: errors with their arguments, fields and tracebacks with local
variables, events and their JSON, logs at DEBUG, standard output.
"""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from semflux import ChatModel, Message, Options, Secret, ToolSpec, Vendor
from semflux.errors import ConfigurationError, SemfluxError
from semflux.events import AnyChatEvent
from tests.faultserver import EOF, REQUEST, FaultServer, Seen, Step, answer, head
from tests.frames import an, cc, sse
from tests.model.asking import CHAT, FINISH, HELLO, JSON, SSE, asking, model_at, settle, streamed, until

KEYS = (
    "sk-canary-0123456789",
    "0123456789abcdef0123456789abcdef",
    "plain-words-as-a-key",
    "Zm9vYmFyYmF6cXV4cXV1eA==",
)
"""Keys of several shapes: with a known beginning, in hex, without any pattern, in base64."""
PROMPT = "the secret question of the user"
SYSTEM = "the secret instructions of the app"


@attrs.frozen
class Shown:
    """What was shown, and by what."""

    texts: list[tuple[str, str]]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.texts)


def shown_by(error: BaseException) -> list[tuple[str, str]]:
    """All that *error* shows."""
    texts = [
        ("str", str(error)),
        ("repr", repr(error)),
        ("args", repr(error.args)),
        ("vars", repr(vars(error))),
    ]
    if isinstance(error, SemfluxError):
        texts.append(("describe", json.dumps(error.describe())))
        texts.append(("pickle", repr(pickle.dumps(error))))
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    # Only our frames: the test's own know the key.
    chain: list[traceback.TracebackException | None] = [trace, trace.__cause__, trace.__context__]
    for link in [item for item in chain if item is not None]:
        texts += [
            (f"locals of {frame.name}", repr(frame.locals))
            for frame in link.stack
            if "/semflux/" in frame.filename or "site-packages" in frame.filename
        ]
    return texts


def shown_in(event: AnyChatEvent) -> list[tuple[str, str]]:
    """All that *event* shows."""
    return [("event", repr(event)), ("event as JSON", json.dumps(event.to_dict()))]


async def ask(model: ChatModel) -> tuple[list[AnyChatEvent], SemfluxError | None]:
    """One stream of *model*, its events and its error. No local variable here knows a key."""
    events: list[AnyChatEvent] = []
    try:
        async for event in model.prompt(PROMPT).system(SYSTEM).stream():
            events.append(event)  # noqa: PERF401  # those before an error count too
    except SemfluxError as error:
        return events, error
    return events, None


async def echo_request(seen: Seen) -> None:
    """An error whose body is the whole request, headers and all."""
    seen.writer.write(answer(seen.requests[0], "Content-Type: text/plain", status="400 Bad"))


async def echo_request_in_the_stream(seen: Seen) -> None:
    message = seen.requests[0].partition(b"\r\n\r\n")[0].decode("latin-1")
    seen.writer.write(streamed(HELLO + sse({"error": {"message": message, "code": "invalid_api_key"}})))


ECHOES: dict[str, Callable[[str], list[Step]]] = {
    "the body of a 401": lambda key: [
        answer(
            f'{{"error": {{"message": "Incorrect API key provided: {key}."}}}}'.encode(),
            JSON,
            status="401 No",
        )
    ],
    "the first half of it": lambda key: [
        answer(f'{{"error": {{"message": "wrong: {key[:12]}"}}}}'.encode(), JSON, status="401 No")
    ],
    "a code": lambda key: [
        answer(json.dumps({"error": {"code": key, "type": key}}).encode(), JSON, status="400 No")
    ],
    "a plain body": lambda key: [answer(f"no such key {key}".encode(), status="403 No")],
    "a page": lambda key: [
        answer(f"<html><title>{key}</title>{key}".encode(), "Content-Type: text/html", status="502 No")
    ],
    "a page with 200": lambda key: [answer(f"<html>{key}".encode(), "Content-Type: text/html")],
    "a page as a stream": lambda key: [answer(f"<html>{key}\n".encode(), SSE)],
    "the reason": lambda key: [answer(b"{}", JSON, status=f"500 {key}")],
    "the request id of a refusal": lambda key: [answer(b"{}", JSON, f"x-request-id: {key}", status="500 No")],
    "the request id of a stream": lambda key: [
        head("200 OK", SSE, f"x-request-id: {key}") + HELLO + sse({"error": {"message": "m"}})
    ],
    "the request id of a cut stream": lambda key: [head("200 OK", SSE, f"request-id: {key}") + HELLO],
    "the location": lambda key: [
        head("307 There", f"Location: https://{key}.example.com/{key}?key={key}", length=0)
    ],
    "the content type": lambda key: [answer(b"x", f"Content-Type: text/{key}; {key}={key}")],
    "other headers": lambda key: [head("200 OK", SSE, f"x-echo: {key}", f"set-cookie: k={key}") + HELLO],
    "a long header": lambda key: [head("200 OK", f"x-echo: {key * 900}"), EOF],
    "no header at all": lambda key: [key.encode() + b"\r\n\r\n", EOF],
    "an error frame": lambda key: [
        streamed(
            HELLO + sse({"error": {"message": f"bad key {key}", "code": key, "type": key, "param": key}})
        )
    ],
    "an error frame of text": lambda key: [streamed(HELLO + sse(f"error: bad key {key}", "error"))],
    "JSON with 200": lambda key: [
        answer(json.dumps({"error": {"message": key, "code": key}}).encode(), JSON)
    ],
    "a frame that is no JSON": lambda key: [streamed(HELLO + f'data: {{"k": "{key}"\n\n'.encode())],
    "a frame of a wrong shape": lambda key: [streamed(HELLO + sse({"choices": key}))],
    "a frame of a wrong shape, deeper": lambda key: [streamed(HELLO + cc({"content": {"k": key}}))],
    "an endless line": lambda key: [streamed(HELLO + b"data: " + key.encode() * 100_000)],
    "a whole answer that is none": lambda key: [answer(json.dumps({"echo": key}).encode(), JSON)],
    "a whole answer that is cut": lambda key: [answer(f'{{"echo": "{key}'.encode(), JSON)],
    "a bad chunk": lambda key: [head("200 OK", SSE, chunked=True) + key.encode() + b"\r\n", EOF],
    "the whole request": lambda key: [echo_request],
    "the whole request, in the stream": lambda key: [echo_request_in_the_stream],
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES.keys())
async def test_a_key_is_shown_nowhere_however_it_is_echoed(
    echo: Callable[[str], list[Step]],
    key: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    async with asking([REQUEST, *echo(key)], api_key=key) as (model, server):
        events, error = await ask(model)
        ended: list[object] = []
        model.prompt(PROMPT).stream().do_finally(
            ended.append
        ).subscribe()  # no receiver for its error: it is logged
        await until(lambda: bool(ended))
        await settle()
        assert key.encode() in server.requests[0]
    assert error is not None
    assert error.__context__ is None
    texts = [*shown_by(error), *[text for event in events for text in shown_in(event)]]
    out, err = capfd.readouterr()
    texts += [("model", repr(model)), ("log", caplog.text), ("stdout", out), ("stderr", err)]
    texts += [("record", repr(vars(record))) for record in caplog.records]
    for where, text in texts:
        for size in (12, len(key)):
            assert key[:size] not in text, where


def configure(key: str) -> dict[str, Callable[[], object]]:
    """Calls that go wrong and have a key in their hands."""
    return {
        "userinfo": lambda: ChatModel("vllm:x", base_url=f"https://user:{key}@example.com/v1"),
        "user": lambda: ChatModel("vllm:x", base_url=f"https://{key}@example.com/v1"),
        "query": lambda: ChatModel("vllm:x", base_url=f"https://example.com/v1?api_key={key}"),
        "fragment": lambda: ChatModel("vllm:x", base_url=f"https://example.com/v1#{key}"),
        "no scheme": lambda: ChatModel("vllm:x", base_url=f"example.com/{key}"),
        "bad port": lambda: ChatModel("vllm:x", base_url=f"https://example.com:{key}"),
        "environment": lambda: ChatModel.from_env(
            "openai-chat:x",
            environ={"OPENAI_API_KEY": key, "OPENAI_BASE_URL": f"https://u:{key}@example.com"},
        ),
        "key beside a bad address": lambda: ChatModel("openai-chat:x", api_key=key, base_url="nowhere"),
        "key beside a bad dialect": lambda: ChatModel("openai-chat:x", api_key=key, dialect="nothing"),
        "key beside a bad vendor": lambda: ChatModel("nobody:x", api_key=key),
        "line end": lambda: ChatModel("openai-chat:x", api_key=f"{key}\n").prompt("x").stream(),
        "letter": lambda: ChatModel("anthropic:x", api_key=f"{key}\u2026").prompt("x").stream(),
        "header": lambda: (
            ChatModel("vllm:x").prompt("x").options(Options(headers={"x-key": Secret(f"{key}\n")})).stream()
        ),
        "refused option": lambda: ChatModel("anthropic:x", api_key=key).prompt("x").options(seed=1).stream(),
    }


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", configure("").keys())
def test_a_wrong_configuration_shows_no_key(name: str, key: str) -> None:
    """In the frames of ours; those of the caller are his."""
    with pytest.raises(ConfigurationError) as caught:
        configure(key)[name]()
    for where, text in shown_by(caught.value):
        assert key not in text, where


WRONG: list[Callable[[ChatModel], object]] = [
    lambda model: model.prompt(PROMPT).system(SYSTEM).options(top_k=1).stream(),
    lambda model: model.prompt(PROMPT).options(extra={"x": [PROMPT, object()]}).stream(),
    lambda model: model.prompt(PROMPT).tools(ToolSpec(name="f", description=SYSTEM)).options(nothing=1),
    lambda model: model.prompt([Message.user(PROMPT), PROMPT]),  # type: ignore[list-item]
]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_request_shows_no_prompt(wrong: Callable[[ChatModel], object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        wrong(ChatModel("openai-chat:gpt-4o", api_key=KEYS[0]))
    for where, text in shown_by(caught.value):
        if where != "locals of prompt":
            assert PROMPT not in text, where
            assert SYSTEM not in text, where


FAILING: dict[str, list[Step]] = {
    "refused": [answer(b'{"error": {"message": "no"}}', JSON, status="400 No")],
    "cut": [head("200 OK", SSE) + HELLO],
    "no stream": [answer(b"<html>", "Content-Type: text/html")],
    "bad frame": [streamed(HELLO + b"data: {\n\n")],
    "reset": [],
    "well": [streamed(CHAT)],
}


@pytest.mark.parametrize("script", FAILING.values(), ids=FAILING.keys())
async def test_prompts_are_in_no_error_and_no_log(
    script: list[Step], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    async with asking([REQUEST, *script]) as (model, server):
        events, error = await ask(model)
        assert PROMPT.encode() in server.requests[0]
    texts = [] if error is None else shown_by(error)
    out, err = capfd.readouterr()
    texts += [text for event in events for text in shown_in(event)]
    texts += [("log", caplog.text), ("out", out), ("err", err)]
    for where, text in texts:
        assert PROMPT not in text, where
        assert SYSTEM not in text, where


@pytest.mark.parametrize("moment", ["headers", "body"])
async def test_a_timeout_of_the_callers_own_shows_no_key(moment: str) -> None:
    """Its traceback goes through whatever waits; the sockets' frames are not among it."""
    begun = [head("200 OK", SSE) + HELLO] if moment == "body" else []
    async with asking([REQUEST, *begun, EOF]) as (model, _):
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.05):
                await ask(model)
    for where, text in shown_by(caught.value):
        assert KEYS[0] not in text, where
        assert PROMPT not in text, where


async def test_a_key_in_an_option_goes_out_as_a_header_and_is_hidden_too() -> None:
    """A header of the user's own, as a `Secret`: the server's echo of it is masked as well."""
    extra = KEYS[2]
    body = json.dumps({"error": {"message": f"what is {extra}?"}}).encode()
    async with asking([REQUEST, answer(body, JSON, status="400 No")]) as (model, server):
        with pytest.raises(SemfluxError) as caught:
            await model.prompt("x").options(headers={"x-extra-key": Secret(extra)}).call()
        assert extra.encode() in server.requests[0]
    assert extra not in str(caught.value)


async def test_a_key_never_goes_to_where_a_redirect_points() -> None:
    async with FaultServer([REQUEST, streamed(CHAT)]) as other:
        script: list[Step] = [REQUEST, head("307 There", f"Location: {other.url}", length=0)]
        for dialect in ("openai-chat", "anthropic"):
            async with FaultServer(script) as server, model_at(server, dialect) as model:
                with pytest.raises(SemfluxError):
                    await model.prompt("x").call()
        assert other.seen == []


async def test_what_a_provider_says_of_itself_is_data_and_no_more() -> None:
    """Odd names of events, ids and models come as text, and start nothing."""
    body = an("execute", code="import os") + HELLO + FINISH
    async with asking([REQUEST, streamed(body)]) as (model, _):
        response = await model.prompt("x").call()
    assert response.text == "Hello"


def test_a_vendor_holds_no_key() -> None:
    assert not any(
        "key" in field.name
        for field in attrs.fields(Vendor)
        if field.name not in ("env_keys", "key_required")
    )


def test_an_error_travels_without_its_key() -> None:
    """L6, the other way: errors are picklable, and what they hold is safe."""
    error = SemfluxError("x", provider="p")
    again: Any = pickle.loads(pickle.dumps(error))
    assert (str(again), again.provider) == ("x", "p")
