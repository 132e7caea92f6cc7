"""The pytest plugin of semflux, by entry point. It switches nothing on by itself.

It stands beside the package, not in it: pytest loads it at its start, and nothing of semflux is to be imported in a run
that does not use it, nor before coverage is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from semflux import ChatModel
    from semflux.clock import VirtualClock
    from semflux.testing import Aftermath

_INI = "semflux_leaks"
_GRACE = "semflux_leaks_grace"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two settings."""
    parser.addini(
        _INI, "fail each test that leaves something of semflux or asyncio behind", "bool", default=False
    )
    parser.addini(_GRACE, "seconds that what is left may take to end (default 2)", default="2")


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line(
        "markers", "semflux_leaks(on=True): fail this test if it leaves something open; on=False: do not"
    )


@pytest.fixture
def semflux_clock() -> VirtualClock:
    """A clock that stands still until the test advances it: for `clock=` of operators, models and transports."""
    from semflux.clock import VirtualClock  # not before it is used: see the top

    return VirtualClock()


@pytest.fixture
def semflux_hooks() -> Iterator[Aftermath]:
    """Collects what is dropped during the test: `dropped_errors`, `dropped_items`, and assertions about them. `Hooks`
    has its receivers back afterwards."""
    from semflux.testing.aftermath import watching  # not before it is used: see the top

    with watching() as aftermath:
        yield aftermath


@pytest.fixture
def semflux_model() -> Callable[..., ChatModel]:
    """Makes a `ChatModel` that is never asked over a network: `semflux_model(answer, ..., name="openai-chat:m")`. Each
    *answer* is the bytes of one response, a `Recording`, or an error of the transport, in the order of the requests;
    other keywords are those of `ChatModel`, without retries unless they say so."""
    from semflux import ChatModel  # not before it is used: see the top
    from semflux.transport.replay import Recording, ReplayTransport

    def make(*answers: Any, name: str = "openai-chat:test", **settings: Any) -> ChatModel:
        recordings = [
            Recording(body=(answer,)) if isinstance(answer, bytes) else answer for answer in answers
        ]
        settings.setdefault("api_key", "test")
        settings.setdefault("max_retries", 0)
        return ChatModel(name, transport=ReplayTransport(*recordings), **settings)

    return make


@pytest.fixture
def semflux_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails the test if it leaves a subscription, a task, a client session, a socket, a loop or a thread behind, or an
    exception that nobody saw: in a loop, or dropped into `Hooks`."""
    from semflux.testing.aftermath import watching  # not before it is used: see the top
    from semflux.testing.leaks import watch

    check = watch().begin()
    with watching() as aftermath:
        yield
        found = check.found(float(request.config.getini(_GRACE)))
    found += [f"dropped error: {error!r}" for error in aftermath.dropped_errors]
    if found:
        pytest.fail("left behind:\n  " + "\n  ".join(found), pytrace=False)


@pytest.fixture(autouse=True)
def _semflux_leaks_where_on(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("semflux_leaks")
    if marker is None:
        on = request.config.getini(_INI)
    else:
        on = marker.args[0] if marker.args else marker.kwargs.get("on", True)
    if on:
        request.getfixturevalue("semflux_leaks")
