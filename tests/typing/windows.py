"""Only checked, never run: what the windows, the groups and the maps of streams give."""

from __future__ import annotations

from typing import assert_type

from reactivex import Observable

from semflux import ChatEventGroup, ChatEventType, ChatStream, Flux, GroupedFlux
from semflux import operators as ops
from semflux.events import AnyChatEvent
from semflux.operators import Signal
from semflux.operators.group_by import Group
from semflux.operators.part import Part

T = ChatEventType


def group_of(event: AnyChatEvent) -> ChatEventGroup:
    return event.type.group


def text_of(event: AnyChatEvent) -> str | None:
    return event.text


def windows(stream: ChatStream, numbers: Flux[int]) -> None:
    """A window is a Flux of the same items."""
    assert_type(numbers.window(3), Flux[Flux[int]])
    assert_type(numbers.window_until(lambda n: n > 3), Flux[Flux[int]])
    assert_type(numbers.window_until(lambda n: n > 3, cut_before=True), Flux[Flux[int]])
    assert_type(numbers.window_while(lambda n: n > 3), Flux[Flux[int]])
    assert_type(numbers.window_until_changed(), Flux[Flux[int]])
    assert_type(numbers.window_until_changed(lambda n: n % 3), Flux[Flux[int]])
    assert_type(numbers.window_timeout(3, 1.0), Flux[Flux[int]])
    steps = stream.window_until(lambda event: event.is_(T.STEP_END))
    assert_type(steps, Flux[Flux[AnyChatEvent]])
    assert_type(steps.flat_map(lambda step: step.collect_list()), Flux[list[AnyChatEvent]])
    numbers.window("3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    numbers.window_until(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def groups(stream: ChatStream, numbers: Flux[int]) -> None:
    """A group knows the type of its key, and that of its values."""
    assert_type(stream.group_by(group_of), Flux[GroupedFlux[ChatEventGroup, AnyChatEvent]])
    assert_type(stream.group_by(group_of, text_of), Flux[GroupedFlux[ChatEventGroup, str | None]])
    assert_type(numbers.group_by(lambda n: n % 3 == 0), Flux[GroupedFlux[bool, int]])


def group(one: GroupedFlux[str, int]) -> None:
    """Operators that keep the items keep the key."""
    assert_type(one.key, str)
    assert_type(one.filter(lambda n: n > 3).take(1), GroupedFlux[str, int])
    assert_type(one.map(str), Flux[str])


def maps(numbers: Flux[int], texts: Flux[str]) -> None:
    """What the function gives is what comes."""
    assert_type(numbers.flat_map_sequential(lambda n: texts, 3), Flux[str])
    assert_type(numbers.flat_map_sequential(lambda n: texts, delay_errors=True), Flux[str])
    assert_type(numbers.flat_map(lambda n: texts, delay_errors=True), Flux[str])
    assert_type(numbers.concat_map(lambda n: texts, delay_errors=True), Flux[str])
    assert_type(numbers.switch_map(lambda n: texts), Flux[str])
    assert_type(numbers.expand(lambda n: Flux.just(n + 1)), Flux[int])
    assert_type(numbers.expand_deep(lambda n: Flux.just(n + 1)), Flux[int])
    assert_type(numbers.switch_on_first(decide), Flux[str])
    numbers.expand(lambda n: texts)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]


def decide(first: Signal[int], whole: Flux[int]) -> Flux[str]:
    return whole.map(str)


def operators(numbers: Observable[int], events: Observable[AnyChatEvent]) -> None:
    """The same, in pipes of RxPY."""
    windows_of_three = ops.window(3)
    assert_type(windows_of_three(numbers), Observable[Part[int]])
    assert_type(ops.group_by(group_of)(events), Observable[Group[ChatEventGroup, AnyChatEvent]])
    assert_type(ops.group_by(group_of, text_of)(events), Observable[Group[ChatEventGroup, str | None]])
