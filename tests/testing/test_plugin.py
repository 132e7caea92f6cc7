"""The pytest plugin: its fixtures, its leak check where it is switched on, and nothing where it is not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

FIXTURES = """
import logging

import pytest
from semflux import ChatEventType as T, Flux, Hooks, ServerError
from semflux.transport.replay import Recording

ANSWER = b'data: {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}\\n\\ndata: [DONE]\\n\\n'


def test_the_clock_stands_still(semflux_clock):
    told = []
    Flux.never().timeout(item=5, first=5, clock=semflux_clock).subscribe(told.append, told.append)
    assert told == []
    semflux_clock.advance(5)
    assert len(told) == 1


def test_hooks_collect(semflux_hooks):
    Flux.just(1).subscribe(lambda item: 1 / 0)
    semflux_hooks.has_dropped_error(ZeroDivisionError)


def test_hooks_are_their_own_again(caplog):
    with caplog.at_level(logging.ERROR):
        Flux.just(1).subscribe(lambda item: 1 / 0)
    assert "ZeroDivisionError" in caplog.text


async def test_a_model_answers_from_memory(semflux_model):
    model = semflux_model(ANSWER, Recording(status=503), name="openai-chat:m")
    assert (await model.prompt("hello").call()).text == "hi"
    with pytest.raises(ServerError):
        await model.prompt("hello").call()
    await model.aclose()
"""

LEAKY = """
import asyncio

import aiohttp
import pytest
import semflux
from semflux import Flux

ANSWER = b'data: {"choices": [{"index": 0, "delta": {"content": "hi"}}]}\\n\\n'
KEPT = []


async def test_leaks_a_subscription():
    iterator = aiter(semflux.parse(ANSWER, dialect="openai-chat"))
    await anext(iterator)
    KEPT.append(iterator)


async def test_leaks_a_task():
    KEPT.append(asyncio.create_task(asyncio.sleep(60)))
    await asyncio.sleep(0)


@pytest.mark.filterwarnings("ignore")
async def test_leaks_a_session():
    KEPT.append(aiohttp.ClientSession())


def test_leaks_an_error():
    Flux.just(1).subscribe(lambda item: 1 / 0)


async def test_clean_after_a_whole_stream():
    with pytest.raises(semflux.TruncatedStreamError):
        await semflux.parse(ANSWER, dialect="openai-chat").collect_list()


async def test_clean_after_leaving_early():
    async for event in semflux.parse(ANSWER, dialect="openai-chat"):
        break


def test_clean_with_an_error_that_is_meant(semflux_hooks):
    Flux.just(1).subscribe(lambda item: 1 / 0)


@pytest.mark.semflux_leaks(False)
def test_clean_where_it_is_switched_off():
    Flux.just(1).subscribe(lambda item: 1 / 0)
"""


def run(pytester: pytest.Pytester, source: str, *arguments: str, ini: str = "", blocked: bool = False) -> Any:
    pytester.makepyprojecttoml(
        f"""
        [tool.pytest.ini_options]
        asyncio_mode = "auto"
        asyncio_default_fixture_loop_scope = "function"
        filterwarnings = ["error"]
        pythonpath = ["{ROOT}"]
        {ini}
        """
    )
    pytester.makepyfile(source)
    # Named twice, it is loaded once.
    plugin = ("-p", "no:semflux") if blocked else ("-p", "pytest_semflux")
    return pytester.runpytest_subprocess(
        *plugin, "-p", "no:cacheprovider", "-p", "no:randomly", "-rA", *arguments
    )


def test_its_fixtures_do_what_they_say(pytester: pytest.Pytester) -> None:
    run(pytester, FIXTURES, "-p", "no:xdist").assert_outcomes(passed=4)


@pytest.mark.parametrize("arguments", [("-p", "no:xdist"), ("-n", "2")], ids=["one process", "workers"])
def test_where_it_is_switched_on_each_leak_fails_its_own_test(
    pytester: pytest.Pytester, arguments: tuple[str, ...]
) -> None:
    """And says what is left."""
    result = run(pytester, LEAKY, *arguments, ini='semflux_leaks = true\nsemflux_leaks_grace = "0.2"')
    tests = set(re.findall(r"def (test_\w+)", LEAKY))
    leaky = {name for name in tests if name.startswith("test_leaks_")}
    assert leaky == set(re.findall(r"^ERROR \S+::(\w+)", str(result.stdout), re.MULTILINE))
    result.assert_outcomes(passed=len(tests), errors=len(leaky))
    for said in (
        "subscription that was neither read",
        "task that had to be cancelled: <Task",
        "client session: <aiohttp",
        "ZeroDivisionError",
    ):
        assert said in str(result.stdout)


def test_a_marker_switches_it_on_for_one_test(pytester: pytest.Pytester) -> None:
    source = LEAKY.replace("def test_leaks_an_error", "@pytest.mark.semflux_leaks\ndef test_leaks_an_error")
    result = run(pytester, source, "-p", "no:xdist", "-k", "error")
    assert ["test_leaks_an_error"] == re.findall(r"^ERROR \S+::(\w+)", str(result.stdout), re.MULTILINE)


def test_nothing_happens_where_it_is_not_switched_on(pytester: pytest.Pytester) -> None:
    """Nor is anything of semflux imported."""
    source = """
    import sys

    def test_nothing_is_loaded():
        assert not [name for name in sys.modules if name.split(".")[0] in ("semflux", "reactivex", "aiohttp")]

    def test_a_loop_left_open():
        import asyncio, warnings
        warnings.simplefilter("ignore")
        global loop
        loop = asyncio.new_event_loop()
    """
    run(pytester, source, "-p", "no:xdist", "-p", "no:anyio").assert_outcomes(passed=2)


def test_it_can_be_blocked(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(semflux_clock): pass", "-p", "no:xdist", blocked=True)
    result.assert_outcomes(errors=1)
    assert "fixture 'semflux_clock' not found" in str(result.stdout)


def test_it_is_an_entry_point_and_in_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (module,) = project["project"]["entry-points"]["pytest11"].values()
    assert f"{module}.py" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert (ROOT / f"{module}.py").is_file()
