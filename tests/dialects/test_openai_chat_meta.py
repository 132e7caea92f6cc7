"""OpenAI chat: usage, citations, filters, log-probabilities, media, and what nobody modelled."""

from __future__ import annotations

from typing import Any

import pytest

from semflux.dialects.openai_chat_parts import citations_of, filter_events, image_of, usage_of
from semflux.events import ChatEventType
from semflux.response import CitedSource, MediaBlock
from semflux.usage import Usage
from tests.frames import DONE, cc, chat, chunk, cu, sse

T = ChatEventType
STOP = cc({}, "stop")


def test_usage_in_a_chunk_without_choices_belongs_to_the_step() -> None:
    """It comes after the finish reason."""
    seen = chat(cc({"content": "hi"}), STOP, cu(4, 1, total_tokens=5), DONE)

    assert seen.types == ["TEXT_DELTA", "USAGE"]
    for event in seen.of(T.USAGE, T.STEP_END, T.RESPONSE_END):
        assert (event.usage.input_tokens, event.usage.output_tokens, event.usage.total_tokens) == (4, 1, 5)


def test_usage_on_every_chunk_replaces() -> None:
    """An observation, not an amount to add: an explicit 0 counts, an absent field keeps the earlier one."""
    seen = chat(
        cc({"content": "a"}),
        chunk(
            usage={"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 3}}
        ),
        chunk(usage={"prompt_tokens": 9, "completion_tokens": 2}),
        chunk(usage={"completion_tokens": 0}),
        STOP,
        DONE,
    )

    usage = seen.response.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.total_tokens) == (
        9,
        0,
        3,
        9,
    )
    assert [event.usage.output_tokens for event in seen.of(T.USAGE)] == [1, 2, 0]


@pytest.mark.parametrize(
    "said, means",
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, {"input_tokens": 3, "output_tokens": 4}),
        ({"input_tokens": 3, "output_tokens": 4, "total_tokens": 9}, {"input_tokens": 3, "output_tokens": 4, "total_tokens": 9}),
        ({"completion_tokens_details": {"reasoning_tokens": 2}}, {"reasoning_tokens": 2}),
        ({"completion_tokens_details": {"think_tokens": 2, "audio_tokens": 5}}, {"reasoning_tokens": 2, "audio_output_tokens": 5}),
        ({"reasoning_tokens": 2}, {"reasoning_tokens": 2}),
        ({"prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 8}}, {"cache_read_tokens": 7, "cache_write_tokens": 8}),
        ({"prompt_tokens_details": {"audio_tokens": 1, "cache_creation_tokens": 2}}, {"audio_input_tokens": 1, "cache_write_tokens": 2}),
        ({"prompt_cache_hit_tokens": 7, "prompt_cache_miss_tokens": 3}, {"cache_read_tokens": 7}),
        ({"cached_tokens": 0}, {"cache_read_tokens": 0}),
        ({"prompt_tokens": None, "completion_tokens": 4.0, "total_tokens": True}, {"output_tokens": 4}),
        ({"prompt_tokens": "3", "prompt_tokens_details": [1], "completion_tokens": 1e300}, {}),
    ],
)  # fmt: skip
def test_the_names_of_many_vendors_mean_the_same(said: dict[str, Any], means: dict[str, Any]) -> None:
    """Absent is None, zero is 0, and the vendor's own object is kept."""
    assert usage_of(said) == Usage(**means, details=said)


def test_cached_tokens_are_part_of_the_input() -> None:
    """uncached + cached = input; reasoning is inside the output."""
    seen = chat(STOP, cu(1000, 5, prompt_tokens_details={"cached_tokens": 900}), DONE)

    usage = seen.response.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_read_tokens, usage.uncached_tokens) == (1000, 900, 100)


def test_usage_may_stand_in_x_groq_and_has_the_tier_beside_it() -> None:
    """`usage` itself wins."""
    groq = {"usage": {"prompt_tokens": 2, "completion_tokens": 3}}
    seen = chat(
        STOP, chunk(x_groq=groq, service_tier="flex"), chunk(x_groq={"id": "q"}), chunk(usage={}), DONE
    )

    usage = seen.response.usage
    assert usage is not None
    assert (usage.input_tokens, usage.service_tier) == (2, "flex")
    assert seen.types == ["USAGE"]


def test_no_usage_is_none() -> None:
    """Not zero."""
    assert chat(STOP, DONE).response.usage is None


# Citations.


def annotation(url: str, start: int = 0, end: int = 6) -> dict[str, Any]:
    return {
        "type": "url_citation",
        "url_citation": {"url": url, "title": "A", "start_index": start, "end_index": end},
    }


def test_annotations_are_citations_once_per_span_and_source() -> None:
    """The same one sent again is no new occurrence; the same address at another place is."""
    seen = chat(
        cc({"content": "See A."}),
        cc({"annotations": [annotation("https://a.example/")]}),
        cc({"annotations": [annotation("https://a.example/"), annotation("https://a.example/", 7, 9)]}),
        STOP,
        DONE,
    )

    assert [(c.url, c.title, c.start, c.end) for c in seen.response.citations] == [
        ("https://a.example/", "A", 0, 6), ("https://a.example/", "A", 7, 9),
    ]  # fmt: skip
    assert seen.response.citations[0].raw == annotation("https://a.example/")


def test_top_level_citations_come_once_per_url() -> None:
    """They are sent again with every chunk (Perplexity, xAI)."""
    seen = chat(
        chunk({"delta": {"content": "a"}}, citations=["https://a.example/", "https://b.example/"]),
        chunk(
            {"delta": {"content": "b"}},
            citations=["https://a.example/", "https://b.example/", "https://c.example/"],
        ),
        chunk({"delta": {}, "finish_reason": "stop"}, citations=None),
        DONE,
    )

    assert [c.url for c in seen.response.citations] == [
        "https://a.example/",
        "https://b.example/",
        "https://c.example/",
    ]


@pytest.mark.parametrize(
    "values, sources",
    [
        ({"url": "x"}, []),
        ([5, None], []),
        (["u"], [CitedSource(url="u")]),
        ([{"title": "T", "content": "words"}], [CitedSource(title="T", cited_text="words", raw={"title": "T", "content": "words"})]),
    ],
)  # fmt: skip
def test_citations_of_any_shape(values: Any, sources: list[CitedSource]) -> None:
    """Addresses, flat objects; anything else is none."""
    assert [source for source, _ in citations_of(values)] == sources


# Filters, log-probabilities, media.

SAFE = {"hate": {"filtered": False, "severity": "safe"}}
BLOCKED = {"hate": {"filtered": True, "severity": "high"}, "violence": {"filtered": False}, "x": 1}


def test_azures_filter_is_told_where_it_filtered_and_raw_elsewhere() -> None:
    """The first chunk has no choices, another one no delta, and a null delta ends it."""
    seen = chat(
        sse({"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": SAFE}, 5]}),
        cc({"content": "a"}),
        sse({"id": "", "choices": [{"index": 0, "finish_reason": None, "content_filter_results": SAFE}]}),
        chunk({"index": 0, "delta": None, "finish_reason": "content_filter", "content_filter_results": BLOCKED}),
        DONE,
    )  # fmt: skip

    assert seen.types == ["RAW", "TEXT_DELTA", "RAW", "CONTENT_FILTER"]
    verdict = seen.of(T.CONTENT_FILTER)[0]
    assert (verdict.sub_type, verdict.text, verdict.blocked) == ("hate", "high", True)
    assert (seen.response.provider_response_id, seen.response.finish_reason) == ("c1", "content_filter")


@pytest.mark.parametrize("results", [None, {}, [], 5])
def test_no_filter_results_say_nothing(results: Any) -> None:
    """Neither event."""
    assert list(filter_events(None, results)) == []  # type: ignore[arg-type]  # it is not touched


def test_log_probabilities_are_on_their_deltas_and_in_the_response() -> None:
    """In order; null is none; those of tokens that gave no text yet are on the next text."""
    first, second, third = ({"token": t, "logprob": -0.1} for t in "abc")
    seen = chat(
        cc({"content": "a"}, logprobs={"content": [first]}),
        cc({"content": ""}, logprobs={"content": [second]}),
        cc({"content": "c"}, logprobs={"content": [third]}),
        cc({"content": "d"}, logprobs=None),
        cc({"content": "e"}, logprobs={"content": None}),
        STOP,
        DONE,
    )

    assert [event.attributes.get("logprobs") for event in seen.of(T.TEXT_DELTA)] == [
        (first,), (second, third), None, None,
    ]  # fmt: skip
    assert seen.response.logprobs == (first, second, third)


def test_log_probabilities_of_text_that_is_held_back_are_not_lost() -> None:
    """A "<" that may begin a tag waits for what follows."""
    tokens = [{"token": t} for t in ("<", "b>")]
    seen = chat(
        cc({"content": "<"}, logprobs={"content": tokens[:1]}),
        cc({"content": "b>"}, logprobs={"content": tokens[1:]}),
        STOP,
        DONE,
    )

    assert seen.texts(T.TEXT_DELTA) == ["<b>"]
    assert seen.response.logprobs == tuple(tokens)


def test_media_of_a_delta() -> None:
    """Finished images (OpenRouter), pieces of audio, whose transcript is text too."""
    seen = chat(
        cc({"images": [{"image_url": {"url": "data:image/png;base64,QUJD"}}, {"image_url": "https://i.example/x.png"}, {"y": 1}, 5]}),
        cc({"audio": {"id": "x", "data": "QUJD", "transcript": "Hi"}}),
        STOP,
        DONE,
    )  # fmt: skip

    assert seen.types == ["MEDIA_DONE", "MEDIA_DONE", "RAW", "RAW", "MEDIA_PARTIAL", "TEXT_DELTA"]
    assert seen.response.media == (
        MediaBlock(kind="image", mime_type="image/png", data="QUJD"), MediaBlock(kind="image", url="https://i.example/x.png"),
    )  # fmt: skip
    assert seen.of(T.MEDIA_PARTIAL)[0].block == MediaBlock(kind="audio", data="QUJD", transcript="Hi")


@pytest.mark.parametrize(
    "image, block",
    [
        ({"image_url": "data:;base64,QQ=="}, MediaBlock(kind="image", data="QQ==")),
        ({"image_url": "data:image/svg+xml,<svg/>"}, MediaBlock(kind="image", url="data:image/svg+xml,<svg/>")),
        ({"image_url": {"url": ""}}, None),
        ([], None),
    ],
)  # fmt: skip
def test_images_are_data_or_addresses(image: Any, block: MediaBlock | None) -> None:
    """A data URL that is not base64 stays an address."""
    assert image_of(image) == block


# What nobody modelled.


def test_unknown_parts_of_a_delta_are_raw_and_empty_ones_nothing() -> None:
    """Groq's executed tools, moderation, search results; a text beside the content repeats it (Together)."""
    seen = chat(
        cc({"content": "a", "executed_tools": [{"type": "search"}], "x": None, "y": "", "z": [], "w": {}, "role": "assistant"}, text="a"),
        chunk(moderation={"flagged": False}, search_results=[{"url": "u"}]),
        STOP,
        DONE,
    )  # fmt: skip

    assert seen.response.text == "a"
    assert [event.raw for event in seen.of(T.RAW)] == [
        {"executed_tools": ({"type": "search"},)}, {"moderation": {"flagged": False}}, {"search_results": ({"url": "u"},)},
    ]  # fmt: skip


def test_a_frame_that_is_about_nothing_known_is_raw() -> None:
    """Nothing is lost silently; empty data is nothing."""
    seen = chat(
        sse({"type": "ping"}),
        sse({"x": 1}, "hello"),
        b"data:  \n\n",
        b"data:\n\n",
        cc({"content": "a"}),
        STOP,
        DONE,
    )

    assert [event.raw for event in seen.of(T.RAW)] == [{"type": "ping"}, {"x": 1}]
    assert seen.response.repairs.notes == {"empty_frame": 2}


def test_control_lines_and_comments_are_no_frames() -> None:
    """`retry`, `id` and comments; the latter are counted."""
    seen = chat(b"retry: 3000\n\nid: 7\n\n", cc({"content": "k"}), b": ping\n\n\n", STOP, DONE)

    assert seen.types == ["TEXT_DELTA"]
    assert seen.response.repairs.notes == {"comment": 1}
