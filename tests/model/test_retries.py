"""`ChatModel(max_retries=)`: what is sent again, when, how often, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest

from semflux import ChatModel, StepStart
from semflux.clock import VirtualClock
from semflux.errors import ConnectionLostError, SemfluxError, TransportError
from semflux.retry import RetryBudget
from semflux.transport import Recording, ReplayTransport
from tests.frames import Seen
from tests.model.asking import CANARY, CHAT, HELLO, NAMES, Watching, settle, types

OK = Recording(body=(CHAT,))
CUT = Recording(body=(HELLO,))
EMPTY = Recording(body=())


def refusal(status: int, body: bytes = b"", **headers: str) -> Recording:
    sent = {
        "content-type": "application/json",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return Recording(status=status, headers=sent, body=(body,))


async def asked(*answers: Recording | TransportError, **settings: Any) -> tuple[Seen, list[float], int]:
    """What comes of a call that is answered so; when each request was sent, in virtual seconds; and the number of
    STATUS(retry)."""
    clock = VirtualClock()
    times: list[float] = []

    class Timed(ReplayTransport):
        async def open(self, *args, **keywords):
            times.append(clock.monotonic())
            return await super().open(*args, **keywords)

    transport = Timed(*answers, clock=clock)
    model = ChatModel(NAMES["openai-chat"], api_key=CANARY, transport=transport, clock=clock, **settings)
    began = clock.monotonic()
    watching = Watching(model.prompt("hi").stream())
    for _ in range(2000):
        if watching.task.done():
            break
        await settle()
        clock.advance(0.05)
    seen = await watching.done()
    statuses = [event for event in seen.events if event.type == "STATUS" and event.sub_type == "retry"]
    assert transport.acquired == 0
    return seen, [round(when - began, 2) for when in times], len(statuses)


def failure_of(seen: Seen) -> SemfluxError:
    """Its error."""
    assert seen.error is not None
    return seen.error


RETRIED = [
    refusal(408),
    refusal(409),
    refusal(429),
    refusal(500),
    refusal(503),
    refusal(529),
    EMPTY,
    Recording(body=(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n',)),
    Recording(body=(b'data: {"error":{"type":"overloaded_error","message":"busy"}}\n\n',)),
    Recording(body=(b'data: {"choices":[]}\n\n', ConnectionLostError("lost", kind="reset"))),
    refusal(400, x_should_retry="true"),
]


@pytest.mark.parametrize("failure", RETRIED, ids=str)
async def test_what_may_pass_is_sent_again(failure: Recording) -> None:
    """By the retry rule: before the first content event, after a wait of half a second or more."""
    seen, times, statuses = await asked(failure, OK)
    assert seen.response.text == "Hello"
    assert statuses == len(times) - 1 == 1
    assert 0.5 <= times[1] <= 0.8


FINAL = [
    refusal(400),
    refusal(401),
    refusal(404),
    refusal(429, b'{"error":{"code":"insufficient_quota","message":"no money"}}'),
    refusal(500, x_should_retry="false"),
    refusal(429, retry_after="3600"),
    CUT,
    Recording(body=(HELLO + b'data: {"error":{"type":"overloaded_error","message":"busy"}}\n\n',)),
]


@pytest.mark.parametrize("failure", FINAL, ids=str)
async def test_what_cannot_pass_is_not_sent_again(failure: Recording) -> None:
    """Nor what failed after its first content, which would be said twice."""
    seen, times, statuses = await asked(failure, OK)
    assert (len(times), statuses, seen.events[-1].type.value) == (1, 0, "ERROR")
    assert failure_of(seen).attempts == 1


async def test_the_last_failure_is_the_error_as_it_is() -> None:
    """It says how often the request was sent."""
    seen, times, statuses = await asked(refusal(500), refusal(502), refusal(503), OK)
    assert (len(times), statuses, failure_of(seen).status, failure_of(seen).attempts) == (3, 2, 503, 3)
    assert 0.5 <= times[1] <= 0.8
    assert 0.5 <= times[2] - times[1] <= 1.6
    assert types(seen) == ["RESPONSE_START", "STATUS", "STATUS", "ERROR"]


async def test_none_are_sent_again_with_zero() -> None:
    """`max_retries=0` leaves it to the operators."""
    seen, times, statuses = await asked(refusal(500), OK, max_retries=0)
    assert (len(times), statuses, failure_of(seen).status) == (1, 0, 500)


async def test_what_the_provider_asks_for_is_waited_for() -> None:
    """Up to a minute."""
    seen, times, _ = await asked(refusal(429, retry_after="20"), OK)
    assert seen.response.text == "Hello"
    assert 20.0 <= times[1] <= 20.3


async def test_a_connection_that_closes_before_an_answer_is_used_no_more_at_once() -> None:
    """A kept one may have been closed by the server: no wait, once; after that as any failure."""
    lost = ConnectionLostError("closed", phase="headers", kind="disconnected")
    seen, times, statuses = await asked(lost, OK)
    assert (seen.response.text, times[1] < 0.1, statuses) == ("Hello", True, 1)
    again = ConnectionLostError("closed", phase="headers", kind="disconnected")
    seen, times, statuses = await asked(lost, again, OK)
    assert seen.response.text == "Hello"
    assert times[1] < 0.1
    assert times[2] >= 0.5


async def test_a_step_says_which_attempt_it_is() -> None:
    """A step that had begun stays, as a partial one, and gives the answer nothing."""
    role = Recording(body=(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n',))
    seen, _, _ = await asked(role, OK)
    assert [event.attempt for event in seen.events if isinstance(event, StepStart)] == [1, 2]
    assert [step.partial for step in seen.response.steps] == [True, False]
    assert seen.response.full_text == "Hello"


def test_a_tenth_of_the_requests_may_be_sent_again() -> None:
    """And ten to begin with: an outage is not made worse."""
    budget = RetryBudget()
    assert [budget.take() for _ in range(11)] == [True] * 10 + [False]
    for _ in range(10):
        budget.request()
    assert [budget.take(), budget.take()] == [True, False]
