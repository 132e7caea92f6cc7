"""`ChatModel`: a provider, a model and how to reach them; `.prompt(...)` makes requests to it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import attrs

from semflux import local
from semflux.clock import Clock
from semflux.dialects import dialect as find_dialect
from semflux.dialects.anthropic_request import build_anthropic
from semflux.dialects.base import ParserOptions
from semflux.dialects.openai_chat_request import build_openai_chat
from semflux.dialects.vendors import Vendor, auth_headers, resolve
from semflux.errors import ConfigurationError, SemfluxError
from semflux.events import ChatEvent
from semflux.filters import ChatEventFilter
from semflux.flux.chat import ChatStream
from semflux.flux.mono import Mono
from semflux.flux.source import ChatSource
from semflux.http import HttpRequest, Timeouts, check_base_url
from semflux.messages import Message
from semflux.model_pump import Call, ModelPump
from semflux.operators.run import Run
from semflux.request import ChatRequest, Options, ToolSpec
from semflux.response import ChatResponse
from semflux.retry import Retry, RetryBudget, RetrySignal
from semflux.secret import Secret
from semflux.state import RepairLedger
from semflux.transport.aiohttp import AiohttpTransport
from semflux.transport.base import Transport
from semflux.usage import Pricer
from semflux.wire.limits import Limits

_BUILDERS: dict[str, Callable[..., HttpRequest]] = {
    "openai-chat": build_openai_chat,
    "anthropic": build_anthropic,
}


_NO_MESSAGE = (
    'prompt(...) takes a string, a Message, or several: [Message.system("..."), Message.user("...")]'
)


def _target(model: str, vendor: Vendor | None) -> tuple[Vendor, str]:
    """Who answers, and the model's name there."""
    prefix, colon, name = model.partition(":")
    if vendor is not None and colon and prefix == vendor.name and (name or not vendor.model_required):
        return vendor, name
    target = resolve(model)
    return vendor or target.vendor, target.model


def _bare(error: ConfigurationError) -> ConfigurationError:
    """*error* without the frames that it came through, whose local variables a traceback may show."""
    error.__context__ = None
    return error.with_traceback(None)


def _first_of(names: Iterable[str], variables: Mapping[str, str]) -> str | None:
    return next((value for name in names if (value := variables.get(name))), None)


def _check_types(*arguments: tuple[str, object, Any, str]) -> None:
    """Raise for the first argument of another type, without showing its value: it may be a key."""
    for name, value, kind, what in arguments:
        if not isinstance(value, kind):
            raise ConfigurationError(f"{name}= takes {what}, not {type(value).__name__}")


def _as_it_is(policy: Retry, signal: RetrySignal) -> BaseException:
    return signal.failure


class ChatModel:
    """A model at a provider. Making one opens nothing; it may be used by many tasks and loops at once.

    Its connections end with `async with model: ...` or `await model.aclose()`, or else with the event
    loop that they belong to.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | Secret | None = None,
        base_url: str | None = None,
        dialect: str | None = None,
        vendor: Vendor | None = None,
        options: Options | None = None,
        max_retries: int = 2,
        plain_http: bool = False,
        timeouts: Timeouts | None = None,
        transport: Transport | None = None,
        limits: Limits | None = None,
        strict: bool = False,
        pricer: Pricer | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*model* is "VENDOR:NAME", such as "openai-chat:gpt-4o", "anthropic:claude-sonnet-4-5" or
        "groq:...", or "local", or "local:FILE.gguf".

        *base_url*: another server that speaks the vendor's format; https, or http on this machine.
        *plain_http*: allow http on other machines too, where key and prompts are seen by all on the way.
        *dialect*: another format than the vendor's own, for servers that speak several.
        *vendor*: a `Vendor` of your own in place of the one that *model* names; then *model* may also be
        "ITS-NAME:NAME".
        *options*: for every prompt, unless it says otherwise. *timeouts*: the limits in seconds.
        *max_retries*: how often a request is sent again that failed before its first content event in a way that
        may pass (no connection, 408, 409, 429 but no used-up quota, 5xx, an empty or truncated answer), after
        half a second, doubled each time, or what the provider asks for up to a minute. STATUS(retry) tells each.
        *transport*: instead of the network, shared or for tests. *limits*: bounds on what is read.
        *strict*: fail at the first departure of the provider from its own format.
        *pricer*: gives `usage.cost`. *clock*: gives the time, for tests.

        Raises:
            ConfigurationError: for an unknown vendor or dialect, a missing key, a wrong address.
        """
        for name, kinds, value in (
            ("api_key", str | Secret | None, api_key),
            ("base_url", str | None, base_url),
        ):
            if not isinstance(value, kinds):
                raise ConfigurationError(f"{name}= takes a string, not {type(value).__name__}")
            del value
        # From here on no local variable holds a key, nor an address that may hold one: a traceback shows locals.
        key, place = None if api_key is None else Secret(api_key), Secret(base_url or "")
        del api_key, base_url
        _check_types(
            ("model", model, str, "a string like 'openai-chat:gpt-4o'"),
            ("dialect", dialect, str | None, "the name of a dialect"),
            ("vendor", vendor, Vendor | None, "a Vendor"),
            ("options", options, Options | None, "Options(...)"),
            ("max_retries", max_retries, int, "a number of retries"),
            ("plain_http", plain_http, bool, "True or False"),
            ("timeouts", timeouts, Timeouts | None, "Timeouts(...)"),
            ("transport", transport, Transport | None, "a Transport"),
            ("limits", limits, Limits | None, "Limits(...)"),
        )
        self._vendor, self._model = _target(model, vendor)
        if plain_http:
            self._vendor = attrs.evolve(self._vendor, plain_http=True)
        self._dialect = find_dialect(dialect or self._vendor.dialect)
        if self._dialect.name not in _BUILDERS:
            raise ConfigurationError(
                f"the dialect {self._dialect.name!r} reads recordings and builds no requests; those that do: "
                f"{', '.join(_BUILDERS)}"
            )
        self._api_key = key
        self._local = self._vendor.name == "local" and not place
        self._base_url: str | None = None
        if not self._local:
            if not place and self._vendor.base_url is None:
                raise ConfigurationError(
                    f"{self._vendor.name} has no address of its own: pass base_url=...",
                    provider=self._vendor.name,
                )
            try:
                self._base_url = check_base_url(
                    place.reveal() or self._vendor.base_url or "", plain_http=self._vendor.plain_http
                )
            except ConfigurationError as error:
                raise _bare(error) from None
            auth_headers(self._vendor, key)
        self._options = options or Options()
        self._timeouts = timeouts or Timeouts()
        self._own_transport = transport is None
        self._transport = transport or AiohttpTransport()
        self._limits = limits
        self._strict = strict
        self._pricer = pricer
        self._clock = clock
        self._max_retries = max_retries
        self._budget = RetryBudget()
        self._policy = (
            Retry.backoff(max_retries, 0.5)
            .max_backoff(8.0)
            .filter(self._may_retry)
            .on_retry_exhausted_throw(_as_it_is)
        )

    @classmethod
    def from_env(cls, model: str, *, environ: Mapping[str, str] | None = None, **settings: Any) -> Self:
        """A model whose key, and address where the vendor has a variable for it, come from the environment.

        The only place where the environment is read. *environ* stands in for `os.environ`.

        Raises:
            ConfigurationError: as the constructor, also for a missing key; it names the variable.
        """
        vendor, _ = _target(model, settings.get("vendor"))
        for name, names in (("api_key", vendor.env_keys), ("base_url", vendor.env_base_urls)):
            if settings.get(name) is None:
                settings[name] = _first_of(names, os.environ if environ is None else environ)
        try:
            return cls(model, **settings)
        except ConfigurationError as error:
            # As in the constructor: not what was read.
            del settings, environ
            raise _bare(error) from None

    @property
    def name(self) -> str:
        """The model's name as its vendor knows it; "" where it has none."""
        return self._model

    def prompt(self, messages: str | Message | Iterable[Message]) -> Prompt:
        """A request with these messages; a string is one message of the user.

        Raises:
            ConfigurationError: for anything that is no message.
        """
        name = "" if self._local else self._model
        try:
            request = ChatRequest(model=name, messages=messages, options=self._options)
        except TypeError:
            raise ConfigurationError(_NO_MESSAGE) from None
        if not all(isinstance(message, Message) for message in request.messages):
            raise ConfigurationError(_NO_MESSAGE)
        return Prompt(self, request)

    async def aclose(self) -> None:
        """End its connections on the running loop. A transport that was passed in is left alone."""
        if self._own_transport:
            await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        if "_base_url" not in self.__dict__:
            return "<ChatModel>"  # its making fails, and a traceback with local variables is shown
        host = "local" if self._base_url is None else urlsplit(self._base_url).hostname
        return f"<ChatModel {self._vendor.name}:{self._model} at {host}, {self._dialect.name}>"

    def __reduce__(self) -> Any:
        raise TypeError("a ChatModel holds connections and a key: make another one in the other process")

    def stream(
        self,
        request: ChatRequest,
        event_filter: Callable[[ChatEvent], object] | None = ChatEventFilter.DEFAULT,
    ) -> ChatStream:
        """The answer to *request* as a stream of events; what `prompt(...).stream()` calls.

        Raises:
            ConfigurationError: if the provider's format cannot carry the request.
        """
        # Built now, so that what is wrong with it is told where it was written.
        built = None if self._base_url is None else self._build(request, self._base_url, self._api_key)

        async def make_request() -> HttpRequest:
            if built is not None:
                return built
            server = await asyncio.to_thread(local.start, self._model or None)
            return self._build(request, server.base_url, Secret(server.api_key))

        call = Call(
            transport=self._transport,
            request=make_request,
            dialect=self._dialect,
            provider=self._vendor.name,
            model=self._model,
            timeouts=self._timeouts,
            options=ParserOptions(think_tags=request.options.think_tags, provider=self._vendor.name),
            clock=self._clock,
            resend=self._max_retries > 0,
        )

        def prepare(run: Run) -> None:
            self._budget.request()
            run.clock = self._clock or run.clock
            run.state.configure(
                ledger=RepairLedger(strict=self._strict),
                limits=self._limits,
                pricer=self._pricer,
                time=None if self._clock is None else self._clock.time,
            )

        stream = ChatStream(ChatSource(lambda run: ModelPump(run, call), event_filter, prepare))
        return stream.retry_when(self._policy) if self._max_retries else stream

    def _may_retry(self, error: BaseException) -> bool:
        return isinstance(error, SemfluxError) and error.retryable and self._budget.take()

    def _build(self, request: ChatRequest, base_url: str, api_key: Secret | None) -> HttpRequest:
        try:
            return _BUILDERS[self._dialect.name](
                request, base_url=base_url, api_key=api_key, vendor=self._vendor
            )
        except ConfigurationError as error:
            # Its frames hold the prompt; its message says all.
            raise _bare(error) from None


@attrs.frozen
class Prompt:
    """A request that is ready to be sent, any number of times. Each method gives a new one."""

    _model: ChatModel = attrs.field(repr=False)
    request: ChatRequest = attrs.field(repr=False)
    """What will be asked."""
    _keep: Callable[[ChatEvent], object] | None = attrs.field(default=ChatEventFilter.DEFAULT, repr=False)

    def system(self, text: str) -> Prompt:
        """With these instructions before the conversation."""
        return self._with(messages=(Message.system(text), *self.request.messages))

    def options(self, options: Options | None = None, /, **changes: Any) -> Prompt:
        """With these options, or with these changes to them: `.options(temperature=0, max_tokens=100)`.

        Raises:
            ConfigurationError: for an option that does not exist, or a value that it cannot have.
        """
        base = self.request.options if options is None else options
        if not isinstance(base, Options):
            raise ConfigurationError("options(...) takes an Options, or names: .options(max_tokens=100)")
        known = [field.name for field in attrs.fields(Options)]
        wrong = [name for name in changes if name not in known]
        if wrong:
            raise ConfigurationError(
                f"unknown options: {', '.join(wrong)}. Known: {', '.join(sorted(known))}; a vendor's own go "
                "into extra={...}"
            )
        try:
            return self._with(options=attrs.evolve(base, **changes))
        except (TypeError, ValueError):
            raise ConfigurationError(
                f"a value among {', '.join(changes)} is of a type that its option cannot have"
            ) from None

    def tools(self, *tools: ToolSpec) -> Prompt:
        """With these tools offered. Their calls are events; they are not run.

        Raises:
            ConfigurationError: for anything that is no `ToolSpec`.
        """
        if not all(isinstance(tool, ToolSpec) for tool in tools):
            raise ConfigurationError("tools(...) takes ToolSpec objects, one after another: .tools(a, b)")
        return self._with(tools=tools)

    def event_filter(self, keep: Callable[[ChatEvent], object] | None) -> Prompt:
        """Delivering only the events for which *keep* is true, and the frame of the stream; None delivers all.
        Default: `ChatEventFilter.DEFAULT`, all but HEARTBEAT and RAW."""
        return attrs.evolve(self, keep=keep)

    def stream(self) -> ChatStream:
        """The answer as a stream of events. Cold: each subscription sends the request.

        Raises:
            ConfigurationError: if the provider's format cannot carry the request.
        """
        return self._model.stream(self.request, self._keep)

    def call(self) -> Mono[ChatResponse]:
        """The whole answer, folded from the same stream: await it, or `.block()` in plain code.

        Errors: those of the stream; `StreamAbortedError` if it ends in ABORT.
        """
        return self.stream().response()

    def _with(self, **changes: Any) -> Prompt:
        return attrs.evolve(self, request=attrs.evolve(self.request, **changes))


__all__ = ("ChatModel", "Prompt")
