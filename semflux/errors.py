"""Every error a user can meet, as one tree.

```
SemfluxError
    ConfigurationError
    TransportError
        ConnectError
            TlsError
        ConnectTimeoutError, PoolTimeoutError, FirstEventTimeoutError,
        IdleTimeoutError, TotalTimeoutError            (also TimeoutError)
        ConnectionLostError                            (also ConnectionError)
        BadResponseError
    ProviderError                  the provider refused or failed, by status or in the stream
        BadRequestError
            ContextLengthError
        AuthenticationError, PermissionDeniedError, NotFoundError, RequestTimeoutError,
        ConflictError, RequestTooLargeError, RateLimitError, QuotaExceededError,
        OverloadedError, ServerError, RedirectRefusedError
    BodyError
        UnexpectedContentTypeError, NotAStreamError, EmptyResponseError, ResponseTooLargeError
    FrameError
        FrameTooLargeError
        BadFrameError
            JsonTooDeepError
    TruncatedStreamError           the stream ended without its finish signal
    PartialJsonError               the answer's text is not the JSON that was asked for
    ToolError
        ToolNotFoundError, ToolArgumentsError, ToolFailedError, ToolTimeoutError,
        ToolDeniedError, ToolResultTooLargeError
    StreamAbortedError             raised by call() and block() where the stream ended in ABORT
    BufferOverflowError            a consumer too slow for its buffer, where its policy says error
    OperatorError
        EmptySequenceError, TooManyItemsError, RetryExhaustedError, BlockingInLoopError,
        AlreadyConsumedError, BlockedContentError, CompositeError
    RepairError                    strict mode met something it would have had to mend
    LogError
        LogWriteError, LogUnavailableError, ReplayGapError, SlowClientError
```

An error tells what happened, whose fault it is and what to do. It never holds a key, a header, a
URL query, a request or response body, or an exception of the transport underneath: such exceptions
carry request headers in their `repr`, so they are read for their safe fields and then left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from semflux.response import ChatResponse

ErrorPhase: TypeAlias = Literal[
    "config", "connect", "headers", "first_event", "stream", "eof", "tool", "sink"
]
"""Where in the life of a stream an error arose."""

MAX_ERROR_TEXT = 2048
"""Characters of a provider's own message that an error keeps."""


class SemfluxError(Exception):
    """The base of all errors that leave this library."""

    default_kind: ClassVar[str] = "error"
    default_phase: ClassVar[ErrorPhase] = "stream"
    default_retryable: ClassVar[bool] = False

    kind: str
    """A stable word for the exact cause, such as "refused" or "json"; default: the class's own."""
    phase: ErrorPhase
    """Where in the life of a stream it arose."""
    provider: str | None
    """The provider or dialect it concerns; None when no provider is involved."""
    status: int | None
    """The HTTP status; None when there was none."""
    code: str | None
    """The provider's own error code or type; None when it gave none."""
    request_id: str | None
    """The provider's id of the failed request, to quote to its support; None when unknown."""
    retryable: bool
    """True if the same request may succeed when it is sent again."""
    retry_after: float | None
    """Seconds that the provider asks to wait before the next attempt; None when it does not say."""
    attempts: int
    """How many times the request was sent, this one included; 0 when it never was."""
    partial: ChatResponse | None
    """What had arrived before the failure; None when there is no stream to speak of."""

    def __init__(
        self,
        message: str = "",
        *,
        kind: str | None = None,
        phase: ErrorPhase | None = None,
        provider: str | None = None,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retryable: bool | None = None,
        retry_after: float | None = None,
        attempts: int = 0,
        partial: ChatResponse | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = self.default_kind if kind is None else kind
        self.phase = self.default_phase if phase is None else phase
        self.provider = provider
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retryable = self.default_retryable if retryable is None else retryable
        self.retry_after = retry_after
        self.attempts = attempts
        self.partial = partial

    @property
    def message(self) -> str:
        """What happened, in a sentence."""
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        state = dict(self.__dict__)
        return (_rebuild, (type(self), self.args), state)

    def describe(self) -> dict[str, Any]:
        """The error as JSON-able fields, without *partial*: for logs and event codecs."""
        fields: dict[str, Any] = {"class": type(self).__name__, "message": str(self)}
        for name in ("kind", "phase", "provider", "status", "code", "request_id"):
            fields[name] = getattr(self, name)
        fields["retryable"] = self.retryable
        fields["retry_after"] = self.retry_after
        fields["attempts"] = self.attempts
        return fields


def _rebuild(cls: type[SemfluxError], args: tuple[Any, ...]) -> SemfluxError:
    return cls(*args)


class ConfigurationError(SemfluxError):
    """A call of this library is wrong; the message says what to write instead."""

    default_kind = "config"
    default_phase: ClassVar[ErrorPhase] = "config"


class TransportError(SemfluxError):
    """The connection failed: the network or the peer's HTTP, not the model."""

    default_kind = "transport"


class ConnectError(TransportError):
    """No connection could be made. *kind* is one of refused, dns, unreachable, tls."""

    default_kind = "connect"
    default_phase: ClassVar[ErrorPhase] = "connect"
    default_retryable = True


class TlsError(ConnectError):
    """TLS failed: a certificate that is not trusted, a wrong host name, or no TLS at all."""

    default_kind = "tls"
    default_retryable = False


class ConnectTimeoutError(TransportError, TimeoutError):
    """The connection was not made within the *connect* limit."""

    default_kind = "connect_timeout"
    default_phase: ClassVar[ErrorPhase] = "connect"
    default_retryable = True


class PoolTimeoutError(TransportError, TimeoutError):
    """No connection of the pool came free within the *pool* limit."""

    default_kind = "pool_timeout"
    default_phase: ClassVar[ErrorPhase] = "connect"


class FirstEventTimeoutError(TransportError, TimeoutError):
    """No content event came within the *first* limit."""

    default_kind = "first_event_timeout"
    default_phase: ClassVar[ErrorPhase] = "first_event"


class IdleTimeoutError(TransportError, TimeoutError):
    """No byte came within the *idle* limit."""

    default_kind = "idle_timeout"


class TotalTimeoutError(TransportError, TimeoutError):
    """The stream was not over within the *total* limit."""

    default_kind = "total_timeout"


class ConnectionLostError(TransportError, ConnectionError):
    """The peer closed or reset the connection before the answer was whole."""

    default_kind = "connection_lost"
    default_retryable = True


class BadResponseError(TransportError):
    """The peer's answer is not HTTP, or breaks its rules or bounds."""

    default_kind = "bad_response"
    default_phase: ClassVar[ErrorPhase] = "headers"


class ProviderError(SemfluxError):
    """The provider refused the request or failed, by HTTP status or inside the stream."""

    default_kind = "provider"


class BadRequestError(ProviderError):
    """The request is wrong (400, 422): change it before sending it again."""

    default_kind = "bad_request"


class ContextLengthError(BadRequestError):
    """The prompt does not fit the model's context window."""

    default_kind = "context_length"


class AuthenticationError(ProviderError):
    """The key is missing, wrong or revoked (401)."""

    default_kind = "authentication"


class PermissionDeniedError(ProviderError):
    """The key may not do this (403)."""

    default_kind = "permission_denied"


class NotFoundError(ProviderError):
    """No such model or path (404)."""

    default_kind = "not_found"


class RequestTimeoutError(ProviderError):
    """The provider gave up waiting (408)."""

    default_kind = "request_timeout"
    default_retryable = True


class ConflictError(ProviderError):
    """The request clashes with another one (409)."""

    default_kind = "conflict"
    default_retryable = True


class RequestTooLargeError(ProviderError):
    """The request body is too large (413)."""

    default_kind = "request_too_large"


class RateLimitError(ProviderError):
    """Too many requests or tokens for now (429); *retry_after* says when to come back."""

    default_kind = "rate_limit"
    default_retryable = True


class QuotaExceededError(ProviderError):
    """The account's quota or spending limit is used up: waiting does not help."""

    default_kind = "quota_exceeded"


class OverloadedError(ProviderError):
    """The provider has no capacity right now (529, or 503 with such a code)."""

    default_kind = "overloaded"
    default_retryable = True


class ServerError(ProviderError):
    """The provider failed (5xx)."""

    default_kind = "server_error"
    default_retryable = True


class RedirectRefusedError(ProviderError):
    """The server answered with a redirect, which is never followed: it would carry the key along."""

    default_kind = "redirect_refused"
    default_phase: ClassVar[ErrorPhase] = "headers"


class BodyError(SemfluxError):
    """The body of the answer is not what was asked for."""

    default_kind = "body"


class UnexpectedContentTypeError(BodyError):
    """The answer's content type is neither a stream nor JSON, such as a proxy's HTML page."""

    default_kind = "content_type"
    default_phase: ClassVar[ErrorPhase] = "headers"


class NotAStreamError(BodyError):
    """The body claims to be a stream but holds something else."""

    default_kind = "not_a_stream"


class EmptyResponseError(BodyError):
    """The answer has no body at all."""

    default_kind = "empty_response"
    default_retryable = True


class ResponseTooLargeError(BodyError):
    """The answer passed a bound on its bytes or events."""

    default_kind = "response_too_large"


class FrameError(SemfluxError):
    """A frame of the stream cannot be used."""

    default_kind = "frame"


class FrameTooLargeError(FrameError):
    """A line or frame passed its bound."""

    default_kind = "frame_too_large"


class BadFrameError(FrameError):
    """A frame is damaged. *kind* is one of prelude_crc, message_crc, length, header_type,
    header_utf8, header_name, json, shape."""

    default_kind = "shape"


class JsonTooDeepError(BadFrameError):
    """A frame's JSON is nested deeper than the bound."""

    default_kind = "json"


class TruncatedStreamError(SemfluxError):
    """The stream ended without the provider's finish signal: the answer is not whole."""

    default_kind = "stream_truncated"
    default_phase: ClassVar[ErrorPhase] = "eof"
    default_retryable = True


class PartialJsonError(SemfluxError):
    """The answer's text is not the JSON asked for: the model's fault. *kind* is one of json, cut_short, no_json, type."""

    default_kind = "json"


class ToolError(SemfluxError):
    """A tool call could not be carried out."""

    default_kind = "tool"
    default_phase: ClassVar[ErrorPhase] = "tool"


class ToolNotFoundError(ToolError):
    """The model called a tool that was not offered."""

    default_kind = "tool_not_found"


class ToolArgumentsError(ToolError):
    """The arguments are no complete JSON object, break the schema or pass a bound."""

    default_kind = "tool_arguments"


class ToolFailedError(ToolError):
    """The tool raised."""

    default_kind = "tool_failed"


class ToolTimeoutError(ToolError):
    """The tool did not end within its limit."""

    default_kind = "tool_timeout"


class ToolDeniedError(ToolError):
    """The call was not approved."""

    default_kind = "tool_denied"


class ToolResultTooLargeError(ToolError):
    """The tool's result passed its bound."""

    default_kind = "tool_result_too_large"


class StreamAbortedError(SemfluxError):
    """The stream was stopped from the other side (ABORT) while a whole answer was waited for."""

    default_kind = "aborted"


class BufferOverflowError(SemfluxError):
    """A consumer was slower than its buffer is large."""

    default_kind = "buffer_overflow"
    default_phase: ClassVar[ErrorPhase] = "sink"


class OperatorError(SemfluxError):
    """An operator's own rule was broken."""

    default_kind = "operator"
    default_phase: ClassVar[ErrorPhase] = "sink"


class EmptySequenceError(OperatorError):
    """An item was required of a stream that had none."""

    default_kind = "empty_sequence"


class TooManyItemsError(OperatorError):
    """One item was required of a stream that had more."""

    default_kind = "too_many_items"


class RetryExhaustedError(OperatorError):
    """All retries failed; the last failure is the `__cause__`."""

    default_kind = "retry_exhausted"


class BlockingInLoopError(OperatorError):
    """A blocking call was made in a thread whose event loop is running: it would wait for itself."""

    default_kind = "blocking_in_loop"


class AlreadyConsumedError(OperatorError):
    """The source can be read once and has been."""

    default_kind = "already_consumed"


class BlockedContentError(OperatorError):
    """The answer had something in it that `guard()` was to stop, with *fail*."""

    default_kind = "blocked"


class CompositeError(OperatorError):
    """Several sources of one stream failed, and their errors waited for the end; `errors` has them."""

    default_kind = "composite"

    errors: tuple[Exception, ...] = ()
    """The errors, in the order in which they came."""

    @classmethod
    def of(cls, errors: Sequence[Exception]) -> Exception:
        """The one error of *errors*; of several one of this class, with a group of them as its cause."""
        if len(errors) == 1:
            return errors[0]
        names = ", ".join([type(error).__name__ for error in errors])
        composite = cls(f"{len(errors)} sources failed ({names}): see its `errors`")
        composite.errors = tuple(errors)
        composite.__cause__ = ExceptionGroup("the sources that failed", errors)
        return composite


class RepairError(SemfluxError):
    """Strict mode met a departure from the provider's format that would have been mended."""

    default_kind = "repair"


class LogError(SemfluxError):
    """An event log failed."""

    default_kind = "log"
    default_phase: ClassVar[ErrorPhase] = "sink"


class LogWriteError(LogError):
    """An event could not be written to the log."""

    default_kind = "log_write"


class LogUnavailableError(LogError):
    """The log cannot be reached."""

    default_kind = "log_unavailable"


class ReplayGapError(LogError):
    """The events asked for are no longer, or were never, in the log."""

    default_kind = "replay_gap"


class SlowClientError(LogError):
    """A client of the gateway stopped reading."""

    default_kind = "slow_client"


_TREE = [
    value for value in list(globals().values()) if isinstance(value, type) and issubclass(value, SemfluxError)
]

ERROR_CLASSES: dict[str, type[SemfluxError]] = {cls.__name__: cls for cls in _TREE}
"""Every class of the tree by its name, for codecs."""

__all__ = (
    "ERROR_CLASSES",
    "MAX_ERROR_TEXT",
    "AlreadyConsumedError",
    "AuthenticationError",
    "BadFrameError",
    "BadRequestError",
    "BadResponseError",
    "BlockedContentError",
    "BlockingInLoopError",
    "BodyError",
    "BufferOverflowError",
    "CompositeError",
    "ConfigurationError",
    "ConflictError",
    "ConnectError",
    "ConnectTimeoutError",
    "ConnectionLostError",
    "ContextLengthError",
    "EmptyResponseError",
    "EmptySequenceError",
    "ErrorPhase",
    "FirstEventTimeoutError",
    "FrameError",
    "FrameTooLargeError",
    "IdleTimeoutError",
    "JsonTooDeepError",
    "LogError",
    "LogUnavailableError",
    "LogWriteError",
    "NotAStreamError",
    "NotFoundError",
    "OperatorError",
    "OverloadedError",
    "PartialJsonError",
    "PermissionDeniedError",
    "PoolTimeoutError",
    "ProviderError",
    "QuotaExceededError",
    "RateLimitError",
    "RedirectRefusedError",
    "RepairError",
    "ReplayGapError",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "ResponseTooLargeError",
    "RetryExhaustedError",
    "SemfluxError",
    "ServerError",
    "SlowClientError",
    "StreamAbortedError",
    "TlsError",
    "TooManyItemsError",
    "ToolArgumentsError",
    "ToolDeniedError",
    "ToolError",
    "ToolFailedError",
    "ToolNotFoundError",
    "ToolResultTooLargeError",
    "ToolTimeoutError",
    "TotalTimeoutError",
    "TransportError",
    "TruncatedStreamError",
    "UnexpectedContentTypeError",
)
