"""What a stream came to: `ChatResponse`, its steps, and the values in them.

These are plain values; `fold.py` makes them from the events of a stream and nothing else does.
"""

# pyright does not know what a field with a converter holds, though it is declared.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from semflux.frozen import EMPTY, FrozenDict, clip, clip_url, freeze, thaw
from semflux.messages import Message, ToolCall
from semflux.usage import Usage, total

FinishReason: TypeAlias = Literal[
    "stop",
    "length",
    "tool_calls",
    "content_filter",
    "refusal",
    "max_steps",
    "approval_required",
    "other",
]
"""Why an answer ended, in words that are the same for every provider."""


@attrs.frozen(kw_only=True)
class CitedSource:
    """What a part of the answer rests on."""

    url: str | None = attrs.field(default=None, repr=clip_url)
    """Its address; None for a source without one, such as a document of the prompt."""
    title: str | None = attrs.field(default=None, repr=clip)
    """Its title; None when not given."""
    cited_text: str | None = attrs.field(default=None, repr=clip)
    """The words of the source; None when not given."""
    start: int | None = None
    """Where in the answer it applies: the first character; None when not given."""
    end: int | None = None
    """The character after the last; None when not given."""
    raw: Any = attrs.field(default=None, converter=freeze, repr=False)
    """The vendor's own object, to be sent back verbatim; None when there is none."""

    def to_dict(self) -> dict[str, Any]:
        """The fields that are present, JSON-able."""
        return _present(self)


@attrs.frozen(kw_only=True)
class MediaBlock:
    """An image, a sound, a video or a file that the model made, or a piece of one."""

    kind: Literal["image", "audio", "video", "file"]
    mime_type: str | None = attrs.field(default=None, repr=clip)
    """Its media type; None when not given."""
    data: str | None = attrs.field(
        default=None, repr=lambda d: "None" if d is None else f"<{len(d)} characters>"
    )
    """The content in base64; None when only *url* is given."""
    url: str | None = attrs.field(default=None, repr=clip_url)
    """Its address, or the vendor's id of the file; None when *data* is given."""
    transcript: str | None = attrs.field(default=None, repr=clip)
    """What is said in it; None when not given."""

    @property
    def size(self) -> int | None:
        """Bytes of the content; None when only its address is known."""
        if self.data is None:
            return None
        return len(self.data) * 3 // 4 - self.data[-2:].count("=")

    def to_dict(self) -> dict[str, Any]:
        """The fields that are present, JSON-able."""
        return _present(self)


@attrs.frozen(kw_only=True)
class SearchResult:
    """One hit of a search that the provider made."""

    title: str | None = attrs.field(default=None, repr=clip)
    url: str | None = attrs.field(default=None, repr=clip_url)
    snippet: str | None = attrs.field(default=None, repr=clip)
    """Words of the page; None when the vendor gives none (some send them encrypted)."""

    def to_dict(self) -> dict[str, Any]:
        """The fields that are present, JSON-able."""
        return _present(self)


def _present(value: Any) -> dict[str, Any]:
    cls: type[Any] = type(value)
    return {
        field.name: thaw(item)
        for field in attrs.fields(cls)
        if (item := getattr(value, field.name)) is not None
    }


@attrs.frozen
class RepairReport:
    """How often a provider departed from its own format, and what else was noticed on the way."""

    repairs: FrozenDict[str, int] = attrs.field(default=EMPTY, converter=freeze, repr=clip)
    """Departures that were mended, by kind. Strict mode fails at the first one."""
    notes: FrozenDict[str, int] = attrs.field(default=EMPTY, converter=freeze, repr=clip)
    """Things worth a count that are no departure, such as "comment" or "after_end"."""

    @property
    def count(self) -> int:
        """All repairs together."""
        return sum(self.repairs.values())

    def __bool__(self) -> bool:
        return bool(self.repairs)

    def to_dict(self) -> dict[str, Any]:
        """Both tables, JSON-able."""
        return {"repairs": dict(self.repairs), "notes": dict(self.notes)}


@attrs.frozen(kw_only=True)
class StepResponse:
    """What one step (one call of the model) came to."""

    step: int = 0
    """Its number in the stream, from 0."""
    text: str = attrs.field(default="", repr=clip)
    thinking: str = attrs.field(default="", repr=clip)
    refusal: str = attrs.field(default="", repr=clip)
    tool_calls: tuple[ToolCall, ...] = ()
    """In the order of their starts; in a partial step the incomplete ones too."""
    citations: tuple[CitedSource, ...] = ()
    media: tuple[MediaBlock, ...] = attrs.field(default=(), repr=lambda m: f"<{len(m)}>")
    finish_reason: FinishReason | None = None
    """Why it ended; None when it did not end well."""
    provider_finish_reason: str | None = attrs.field(default=None, repr=clip)
    """The vendor's own word for it; None when it said none."""
    usage: Usage | None = None
    """None when the provider gave none."""
    model: str | None = attrs.field(default=None, repr=clip)
    """The model as the provider names it; None when it does not."""
    provider_response_id: str | None = attrs.field(default=None, repr=clip)
    """The vendor's id of the answer; None when it gives none."""
    message: Message = attrs.field(factory=lambda: Message("assistant"), repr=False)
    """The assistant message, ready for the next request."""
    logprobs: tuple[Any, ...] = attrs.field(default=(), converter=freeze, repr=False)
    """The vendor's log-probability objects, one a token, in order; empty when not asked for."""
    partial: bool = False
    """True if it failed or was aborted before its end."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able fields; no clock in them."""
        return {
            "step": self.step,
            "text": self.text,
            "thinking": self.thinking,
            "refusal": self.refusal,
            "tool_calls": [call.to_dict() for call in self.tool_calls],
            "citations": [citation.to_dict() for citation in self.citations],
            "media": [block.to_dict() for block in self.media],
            "finish_reason": self.finish_reason,
            "provider_finish_reason": self.provider_finish_reason,
            "usage": None if self.usage is None else self.usage.to_dict(),
            "model": self.model,
            "provider_response_id": self.provider_response_id,
            "message": self.message.to_dict(),
            "logprobs": thaw(self.logprobs),
            "partial": self.partial,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> StepResponse:
        """The step that `to_dict` wrote."""
        values = dict(fields)
        values["tool_calls"] = tuple([ToolCall(**call) for call in values["tool_calls"]])
        values["citations"] = tuple([CitedSource(**citation) for citation in values["citations"]])
        values["media"] = tuple([MediaBlock(**block) for block in values["media"]])
        values["usage"] = None if values["usage"] is None else Usage.from_dict(values["usage"])
        values["message"] = Message.from_dict(values["message"])
        return cls(**values)


@attrs.frozen(kw_only=True)
class ChatResponse:
    """What a stream came to, over all its steps.

    `text`, `finish_reason`, `message`, `model` and `provider_response_id` are those of the last step;
    `full_text`, `thinking`, `refusal`, `tool_calls`, `citations`, `media` and `logprobs` go over all
    steps. A step that failed and was recovered from stays in *steps* (with `partial`), and in *usage*,
    but gives nothing to the others.
    """

    response_id: str = attrs.field(default="", repr=clip)
    """Our id of the stream, the same on all its events."""
    steps: tuple[StepResponse, ...] = ()
    finish_reason: FinishReason | None = None
    """Why the stream ended; None when it did not end well."""
    usage: Usage | None = None
    """The sum over all steps; None when the provider gave none."""
    repairs: RepairReport = RepairReport()
    partial: bool = False
    """True if the stream failed or was aborted: what is here is what had arrived."""

    @property
    def _counted(self) -> list[StepResponse]:
        last = len(self.steps) - 1
        return [step for i, step in enumerate(self.steps) if not step.partial or (self.partial and i == last)]

    @property
    def _last(self) -> StepResponse:
        counted = self._counted
        return counted[-1] if counted else _NO_STEP

    @property
    def text(self) -> str:
        """The text of the last step."""
        return self._last.text

    @property
    def full_text(self) -> str:
        """The text of all steps, joined."""
        return "".join([step.text for step in self._counted])

    @property
    def thinking(self) -> str:
        """The thinking of all steps, joined."""
        return "".join([step.thinking for step in self._counted])

    @property
    def refusal(self) -> str:
        """The words of refusal of all steps, joined; "" when there are none."""
        return "".join([step.refusal for step in self._counted])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of all steps, in the order of their starts."""
        return _joined(step.tool_calls for step in self._counted)

    @property
    def citations(self) -> tuple[CitedSource, ...]:
        """The citations of all steps, in order."""
        return _joined(step.citations for step in self._counted)

    @property
    def media(self) -> tuple[MediaBlock, ...]:
        """The finished media of all steps, in order."""
        return _joined(step.media for step in self._counted)

    @property
    def logprobs(self) -> tuple[Any, ...]:
        """The log-probability objects of all steps, in order."""
        return _joined(step.logprobs for step in self._counted)

    @property
    def provider_finish_reason(self) -> str | None:
        """The vendor's own word for why the last step ended; None when it said none."""
        return self._last.provider_finish_reason

    @property
    def model(self) -> str | None:
        """The model of the last step, as the provider names it; None when it does not."""
        return self._last.model

    @property
    def provider_response_id(self) -> str | None:
        """The vendor's id of the last step's answer; None when it gives none."""
        return self._last.provider_response_id

    @property
    def message(self) -> Message:
        """The assistant message of the last step, ready for the next request."""
        return self._last.message

    def to_dict(self) -> dict[str, Any]:
        """JSON-able fields. No clock in it: two runs over the same bytes differ in `response_id` alone."""
        return {
            "text": self.text,
            "full_text": self.full_text,
            "thinking": self.thinking,
            "refusal": self.refusal,
            "tool_calls": [call.to_dict() for call in self.tool_calls],
            "citations": [citation.to_dict() for citation in self.citations],
            "media": [block.to_dict() for block in self.media],
            "finish_reason": self.finish_reason,
            "provider_finish_reason": self.provider_finish_reason,
            "usage": None if self.usage is None else self.usage.to_dict(),
            "model": self.model,
            "provider_response_id": self.provider_response_id,
            "response_id": self.response_id,
            "message": self.message.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "repairs": self.repairs.to_dict(),
            "partial": self.partial,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ChatResponse:
        """The response that `to_dict` wrote."""
        return cls(
            response_id=fields["response_id"],
            steps=tuple([StepResponse.from_dict(step) for step in fields["steps"]]),
            finish_reason=fields["finish_reason"],
            usage=None if fields["usage"] is None else Usage.from_dict(fields["usage"]),
            repairs=RepairReport(**fields["repairs"]),
            partial=fields["partial"],
        )

    @classmethod
    def of(
        cls,
        steps: Iterable[StepResponse],
        *,
        response_id: str = "",
        finish_reason: FinishReason | None = None,
        repairs: RepairReport | None = None,
        partial: bool = False,
    ) -> ChatResponse:
        """A response over *steps*, its usage summed."""
        steps = tuple(steps)
        return cls(
            response_id=response_id,
            steps=steps,
            finish_reason=finish_reason,
            usage=total(step.usage for step in steps),
            repairs=RepairReport() if repairs is None else repairs,
            partial=partial,
        )


_NO_STEP = StepResponse()


def _joined(tuples: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple([item for items in tuples for item in items])


__all__ = (
    "ChatResponse",
    "CitedSource",
    "FinishReason",
    "MediaBlock",
    "RepairReport",
    "SearchResult",
    "StepResponse",
)
