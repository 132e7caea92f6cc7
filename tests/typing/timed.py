"""Only checked, never run: the types of operators that go by the time, by a thread, or by a context."""

from __future__ import annotations

from typing import assert_type

from reactivex.scheduler import ThreadPoolScheduler

from semflux import Context, Flux
from semflux.flux import ChatStream, Mono


def timed(flux: Flux[int], mono: Mono[int], chat: ChatStream) -> None:
    assert_type(
        flux.delay_elements(1).delay_subscription(1).delay_until(lambda item: Flux.just(item)), Flux[int]
    )
    assert_type(flux.sample(1).debounce(1).throttle_first(1).take_for(1).skip_for(1), Flux[int])
    assert_type(flux.elapsed(), Flux[tuple[float, int]])
    assert_type(flux.timestamp(), Flux[tuple[float, int]])
    assert_type(mono.delay_element(1).delay_subscription(flux), Mono[int])
    assert_type(mono.elapsed(), Mono[tuple[float, int]])
    assert_type(mono.timestamp(), Mono[tuple[float, int]])
    thread = ThreadPoolScheduler(1)
    assert_type(flux.publish_on(thread).publish_on(thread, 1).subscribe_on(thread), Flux[int])
    assert_type(mono.publish_on(thread).subscribe_on(thread), Mono[int])
    assert_type(chat.publish_on(thread).subscribe_on(thread), ChatStream)
    assert_type(chat.delay_elements(1).take_for(1), ChatStream)


def contextual(flux: Flux[int], mono: Mono[int], chat: ChatStream, context: Context) -> None:
    assert_type(flux.context_write({"key": 1}), Flux[int])
    assert_type(chat.context_write(lambda context: context.put("key", 1).put_all({}).delete("a")), ChatStream)
    assert_type(Flux.defer_contextual(lambda context: Flux.just(len(context))), Flux[int])
    assert_type(Mono.defer_contextual(lambda context: mono), Mono[int])
    assert_type(flux.transform_deferred_contextual(lambda stream, context: stream.map(str)), Flux[str])
