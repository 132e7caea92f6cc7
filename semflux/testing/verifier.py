"""`StepVerifier`: what a stream must do, step by step; and whether it does."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from reactivex import abc

from semflux.clock import VirtualClock
from semflux.errors import ConfigurationError
from semflux.events import ChatEvent, ChatEventType
from semflux.response import ChatResponse
from semflux.testing import chat_steps, steps
from semflux.testing.aftermath import Aftermath, watching
from semflux.testing.script import Script
from semflux.testing.steps import Matcher, Step, Wait, step_name
from semflux.testing.verification import Verification, checked_steps, run_here

T = TypeVar("T")


class StepVerifier(Generic[T]):
    r"""A script of what is expected of a stream; nothing is subscribed before it is verified.

    ```python
    StepVerifier.create(Flux.just("a", "b")).expect_next("a", "b").verify_complete()
    ```

    Each method gives a new verifier with one step more, so a beginning can be shared, and a verifier
    can be verified any number of times; each time is a subscription of its own. The last step says how
    it ends. A step that fails cancels the subscription and raises `StepFailedError`, whose text names
    the step and shows what had come.

    Steps are taken as signals come: what `then` calls, and `then_cancel`, happen inside the `on_next` of
    the item before them. In plain code `verify` runs an event loop of its own for as long as it takes;
    in a coroutine use `await verify_async()`.
    """

    def __init__(
        self,
        source_of: Callable[[Any], abc.ObservableBase[T]],
        *,
        demand: int | None = None,
        timeout: float = 5.0,
        virtual: bool = False,
        script: tuple[Step, ...] = (),
        closed: bool = False,
    ) -> None:
        """Use `create` or `with_virtual_time`."""
        self._source_of = source_of
        self._demand = demand
        self._timeout = timeout
        self._virtual = virtual
        self._steps = script
        self._closed = closed

    # Making one

    @staticmethod
    def create(
        source: abc.ObservableBase[T], *, demand: int | None = None, timeout: float = 5.0
    ) -> StepVerifier[T]:
        """A verifier of *source*: a Flux, ChatStream or Mono, or any RxPY observable.

        *demand*: items that may come before `then_request` asks for more, pulled as `async for` does;
        None: pushed, any number. *timeout*: seconds that it waits for signals in all.
        """
        if demand is not None and demand < 0:
            raise ConfigurationError(f"demand={demand}: 0 or more, or None for any number")
        return StepVerifier(lambda clock: source, demand=demand, timeout=timeout)

    @staticmethod
    def with_virtual_time(
        supplier: Callable[[VirtualClock], abc.ObservableBase[T]],
        *,
        demand: int | None = None,
        timeout: float = 5.0,
    ) -> StepVerifier[T]:
        """A verifier of what *supplier* makes with the clock that it is given.

        `then_await`, `expect_no_event` and `expect_timeout` move that clock, from timer to timer; RxPY's
        timed operators follow it too. *timeout* is of real time.
        """
        return StepVerifier(supplier, demand=demand, timeout=timeout, virtual=True)

    def _with(self, *added: Step, closed: bool = False) -> StepVerifier[T]:
        if self._closed:
            raise ConfigurationError(
                f"no step can follow {self._steps[-1].name}, with which the stream has ended"
            )
        return StepVerifier(
            self._source_of,
            demand=self._demand,
            timeout=self._timeout,
            virtual=self._virtual,
            script=(*self._steps, *added),
            closed=closed,
        )

    def _expect(self, name: str, match: Callable[[], Matcher], *, semantic: bool = False) -> StepVerifier[T]:
        return self._with(Step(name=name, match=match, semantic=semantic))

    def _do(self, name: str, action: Callable[[Script], object], *, closed: bool = False) -> StepVerifier[T]:
        return self._with(Step(name=name, action=action), closed=closed)

    # Items

    def expect_subscription(self) -> StepVerifier[T]:
        """It is subscribed, which every verification begins with: for scripts that say so."""
        return self._do("expect_subscription()", lambda script: None)

    def expect_next(self, *items: T) -> StepVerifier[T]:
        """These items, in this order; each is a step of its own."""
        return self._with(
            *[
                Step(name=step_name("expect_next", item), match=lambda item=item: steps.next_is(item))  # type: ignore[misc]  # it sees no type for a default
                for item in items
            ]
        )

    def expect_next_count(self, count: int) -> StepVerifier[T]:
        """*count* items, whatever they are."""
        return self._expect(step_name("expect_next_count", count), lambda: steps.next_count(count))

    def expect_next_sequence(self, items: Iterable[T]) -> StepVerifier[T]:
        """The items of *items*, in their order, as one step."""
        kept = tuple(items)
        return self._expect(step_name("expect_next_sequence", list(kept)), lambda: steps.next_sequence(kept))

    def expect_next_matches(self, predicate: Callable[[T], object]) -> StepVerifier[T]:
        """One item, for which *predicate* is true."""
        return self._expect(
            step_name("expect_next_matches", predicate), lambda: steps.next_matches(predicate)
        )

    def assert_next(self, function: Callable[[T], object]) -> StepVerifier[T]:
        """One item, with which *function* is called; it fails the step by raising, as `assert` does."""
        return self._expect(step_name("assert_next", function), lambda: steps.next_satisfies(function))

    def consume_next_with(self, function: Callable[[T], object]) -> StepVerifier[T]:
        """One item, with which *function* is called: `assert_next` under Reactor's other name."""
        return self._expect(step_name("consume_next_with", function), lambda: steps.next_satisfies(function))

    def then_consume_while(
        self, predicate: Callable[[T], object], consumer: Callable[[T], object] | None = None
    ) -> StepVerifier[T]:
        """The items, none or more, up to and without the first one for which *predicate* is false."""
        return self._expect(
            step_name("then_consume_while", predicate), lambda: steps.consume_while(predicate, consumer)
        )

    def record_with(self) -> StepVerifier[T]:
        """From here on the items that steps take are recorded too, anew."""

        def record(script: Script) -> None:
            script.recorded = []

        return self._do("record_with()", record)

    def expect_recorded_matches(self, predicate: Callable[[list[T]], object]) -> StepVerifier[T]:
        """*predicate* is true of the list of what was recorded; the recording ends."""

        def check(script: Script) -> None:
            recorded, script.recorded = script.recorded, None
            if recorded is None:
                raise ConfigurationError("nothing is recorded: record_with() comes before")
            if not predicate(recorded):
                raise steps.Mismatch("the recorded items to match", repr(recorded))

        return self._do(step_name("expect_recorded_matches", predicate), check)

    # What the test does

    def then(self, function: Callable[[], Awaitable[object] | object]) -> StepVerifier[T]:
        """Call *function*; an awaitable that it gives is awaited."""
        return self._do(step_name("then", function), lambda script: function())

    def then_request(self, count: int) -> StepVerifier[T]:
        """Let *count* more items come, where `create` was given a demand."""
        if self._demand is None:
            raise ConfigurationError("then_request() adds to a demand: give one to create(..., demand=0)")
        if count < 1:
            raise ConfigurationError(f"then_request({count}): ask for at least 1")
        return self._do(step_name("then_request", count), lambda script: script.request(count))

    def then_await(self, seconds: float = 0.0) -> StepVerifier[T]:
        """Let time pass, virtual time where that is used. What comes meanwhile waits for the next steps."""
        return self._with(Step(name=step_name("then_await", seconds), wait=Wait(seconds=seconds)))

    def expect_no_event(self, seconds: float) -> StepVerifier[T]:
        """Let time pass; nothing may come meanwhile, neither an item nor an end."""
        wait = Wait(seconds=seconds, silent=True)
        return self._with(Step(name=step_name("expect_no_event", seconds), wait=wait))

    # What a chat stream says

    def expect_type(self, *types: ChatEventType | type[ChatEvent]) -> StepVerifier[T]:
        """Events of these types, or classes, in this order; nothing is passed over."""
        return self._with(
            *[
                Step(name=step_name("expect_type", each), match=lambda each=each: chat_steps.next_type(each))  # type: ignore[misc]  # it sees no type for a default
                for each in types
            ]
        )

    def expect_text(self, text: str) -> StepVerifier[T]:
        """Consecutive pieces of the answer's text that come to *text*, however they are cut.

        The frame of the stream is passed over (lifecycle, steps, starts and ends, usage, citations), so that
        the text is told and nothing else. What a piece has beyond *text* is for the next step: write the
        whole text, or several steps. Works on `stream.text()` too.
        """
        return self._expect(
            step_name("expect_text", text),
            lambda: chat_steps.joined(text, ChatEventType.TEXT_DELTA),
            semantic=True,
        )

    def expect_thinking(self, text: str) -> StepVerifier[T]:
        """Consecutive pieces of reasoning that come to *text*, as `expect_text`."""
        return self._expect(
            step_name("expect_thinking", text),
            lambda: chat_steps.joined(text, ChatEventType.THINKING_DELTA),
            semantic=True,
        )

    def expect_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> StepVerifier[T]:
        """The next complete call is of *name*, with these arguments; None: with any. The frame is passed
        over, and the pieces of the call."""
        wanted = None if arguments is None else dict(arguments)
        named = (name,) if wanted is None else (name, wanted)
        return self._expect(
            step_name("expect_tool", *named), lambda: chat_steps.tool(name, wanted), semantic=True
        )

    def expect_usage(
        self,
        *,
        input: int | None = None,
        output: int | None = None,
        reasoning: int | None = None,
        cache_read: int | None = None,
        cache_write: int | None = None,
        total: int | None = None,
    ) -> StepVerifier[T]:
        """An event says that so many tokens were used; None: any number. The frame is passed over, and
        usage that says something else: it grows while an answer does."""
        given = {
            "input": input,
            "output": output,
            "reasoning": reasoning,
            "cache_read": cache_read,
            "cache_write": cache_write,
            "total": total,
        }
        wanted = {f"{name}_tokens": count for name, count in given.items() if count is not None}
        shown = ", ".join([f"{name}={count}" for name, count in given.items() if count is not None])
        return self._expect(f"expect_usage({shown})", lambda: chat_steps.usage(wanted), semantic=True)

    def expect_response(self, predicate: Callable[[ChatResponse], object] | None = None) -> StepVerifier[T]:
        """RESPONSE_END, with a response for which *predicate* is true. All before it is passed over, content
        too: the response has it."""
        name = "expect_response()" if predicate is None else step_name("expect_response", predicate)
        return self._expect(name, lambda: chat_steps.response(predicate), semantic=True)

    @property
    def _is_semantic(self) -> bool:
        expectations = [step for step in self._steps if step.match is not None]
        return bool(expectations) and expectations[-1].semantic

    # How it ends

    def expect_complete(self) -> StepVerifier[T]:
        """The end. After a semantic step the rest of the frame is passed over, RESPONSE_END too."""
        passes_over = (chat_steps.before_completion,) if self._is_semantic else ()
        step = Step(name="expect_complete()", match=lambda: steps.completes(*passes_over), terminal=True)
        return self._with(step, closed=True)

    def expect_error(
        self,
        type: type[BaseException] | tuple[type[BaseException], ...] | None = None,
        message: str | re.Pattern[str] | None = None,
        matches: Callable[[Any], object] | None = None,
    ) -> StepVerifier[T]:
        """An error: of this *type*, with this *message* (all of it; or a pattern, found in it), for which
        *matches* is true. After a semantic step the rest of the frame is passed over, ERROR too."""
        named: list[str] = []
        if type is not None:
            named.append(steps.types_shown(type, " | "))
        if message is not None:
            named.append(f"message={message if isinstance(message, str) else message.pattern!r}")
        if matches is not None:
            named.append(step_name("matches", matches))
        passes_over = (chat_steps.before_error,) if self._is_semantic else ()
        step = Step(
            name=f"expect_error({', '.join(named)})",
            match=lambda: steps.fails(type, message, matches, *passes_over),
            terminal=True,
        )
        return self._with(step, closed=True)

    def expect_timeout(self, seconds: float) -> StepVerifier[T]:
        """Nothing comes for so long, neither an item nor an end; then it is cancelled."""
        wait = Wait(seconds=seconds, silent=True)
        return self._with(Step(name=step_name("expect_timeout", seconds), wait=wait), closed=True)

    def then_cancel(self) -> StepVerifier[T]:
        """Cancel the subscription; the verification ends there."""
        return self._do("then_cancel()", lambda script: script.cancel(), closed=True)

    # Verifying

    def _verification(self, timeout: float | None) -> Verification:
        return Verification(
            self._source_of,
            checked_steps(self._steps, self._closed),
            demand=self._demand,
            timeout=self._timeout if timeout is None else timeout,
            virtual=self._virtual,
        )

    def verify(self, timeout: float | None = None) -> float:
        """Subscribe, and go through the steps; the seconds it took (virtual ones, where time is).

        *timeout*: in place of that of `create`. In plain code it runs an event loop of its own; inside a
        running loop it works for a stream that need not wait.

        Raises:
            StepFailedError: if a step did not get what it expects.
            BlockingInLoopError: if it has to wait inside a running loop: `await verify_async()` there.
            ConfigurationError: if no step says how the stream ends.
        """
        return run_here(self._verification(timeout).run())

    async def verify_async(self, timeout: float | None = None) -> float:  # noqa: ASYNC109  # of its steps, not of this call
        """As `verify`, in a coroutine."""
        return await self._verification(timeout).run()

    def verify_complete(self) -> float:
        """`expect_complete().verify()`."""
        return self.expect_complete().verify()

    def verify_error(
        self,
        type: type[BaseException] | tuple[type[BaseException], ...] | None = None,
        message: str | re.Pattern[str] | None = None,
        matches: Callable[[Any], object] | None = None,
    ) -> float:
        """`expect_error(...).verify()`."""
        return self.expect_error(type, message, matches).verify()

    def verify_then_assert_that(self, timeout: float | None = None) -> Aftermath:
        """As `verify`; then ask what was dropped meanwhile, and how long it took."""
        with watching() as aftermath:
            aftermath.seconds = self.verify(timeout)
        return aftermath

    async def verify_then_assert_that_async(self, timeout: float | None = None) -> Aftermath:  # noqa: ASYNC109  # as above
        """As `verify_then_assert_that`, in a coroutine."""
        with watching() as aftermath:
            aftermath.seconds = await self.verify_async(timeout)
        return aftermath

    def __repr__(self) -> str:
        return f"<StepVerifier {' '.join([step.name for step in self._steps])}>"


__all__ = ("StepVerifier",)
