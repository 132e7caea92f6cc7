"""The fixture `no_leaks` sees each kind of thing that a test may leave behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LEAKY = """
import asyncio, socket, threading, time
import aiohttp
import pytest

KEPT = []


async def wait():
    await asyncio.sleep(60)


async def raise_late():
    raise ValueError("late")


async def test_leaks_a_task():
    KEPT.append(asyncio.create_task(wait()))
    await asyncio.sleep(0)


def test_leaks_a_task_in_asyncio_run():
    async def main():
        KEPT.append(asyncio.create_task(wait()))
    asyncio.run(main())


def test_leaks_a_task_that_swallows_its_cancel():
    async def stubborn():
        try:
            await wait()
        except asyncio.CancelledError:
            pass
    async def main():
        KEPT.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(0)
    asyncio.run(main())


def test_leaks_a_task_in_a_loop_of_its_own():
    loop = asyncio.new_event_loop()
    KEPT.append(loop.create_task(wait()))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


@pytest.mark.filterwarnings("ignore")
def test_leaks_a_loop():
    KEPT.append(asyncio.new_event_loop())


async def test_leaks_an_exception_nobody_retrieves():
    task = asyncio.create_task(raise_late())
    await asyncio.sleep(0.01)
    del task


async def test_leaks_an_exception_in_a_cycle():
    task = asyncio.create_task(raise_late())
    await asyncio.sleep(0.01)
    box = [task]
    box.append(box)


async def test_leaks_an_exception_in_a_callback():
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0.01)


def test_leaks_a_socket():
    KEPT.append(socket.socket())


async def test_leaks_a_listening_server():
    KEPT.append(await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0))


@pytest.mark.filterwarnings("ignore")
async def test_leaks_a_session():
    KEPT.append(aiohttp.ClientSession())


@pytest.mark.filterwarnings("ignore")
async def test_leaks_a_session_dropped():
    aiohttp.ClientSession()


def test_leaks_a_thread():
    thread = threading.Thread(target=time.sleep, args=(4,), daemon=True)
    thread.start()


def test_leaks_a_task_in_the_lasting_loop():
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="semflux-blocking", daemon=True).start()
    KEPT.append(loop)
    KEPT.append(asyncio.run_coroutine_threadsafe(wait(), loop))
    time.sleep(0.05)


def test_clean_afterwards():
    pass


async def test_clean_async():
    await asyncio.create_task(asyncio.sleep(0))


async def test_clean_when_a_task_is_cancelled_and_not_awaited():
    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()


async def test_clean_when_a_task_is_about_to_end():
    asyncio.create_task(asyncio.sleep(0))


def test_clean_asyncio_run_twice():
    asyncio.run(asyncio.sleep(0))
    asyncio.run(asyncio.sleep(0))


def test_clean_with_executor_threads():
    async def main():
        await asyncio.to_thread(time.sleep, 0.01)
    asyncio.run(main())


async def test_clean_over_a_socket():
    async def answer(reader, writer):
        await reader.readline()
        writer.write(b"hello\\n")
        writer.close()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x\\n")
        assert await reader.readline() == b"hello\\n"
        writer.close()


async def test_clean_session():
    async with aiohttp.ClientSession():
        pass


def test_clean_with_a_thread_that_needs_a_moment():
    threading.Thread(target=time.sleep, args=(0.05,)).start()


def test_clean_with_the_lasting_thread():
    loop = asyncio.new_event_loop()
    KEPT.append(loop)
    threading.Thread(target=loop.run_forever, name="semflux-blocking", daemon=True).start()
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()


async def test_clean_when_the_exception_was_meant(no_leaks):
    asyncio.get_running_loop().call_soon(lambda: 1 / 0)
    await asyncio.sleep(0.01)
    assert len(no_leaks.unhandled) == 1
    no_leaks.unhandled.clear()
"""


def test_each_kind_of_leak_fails_its_own_test_and_no_other(pytester: pytest.Pytester) -> None:
    """Every `test_leaks_*` passes its body and errs at its end; every `test_clean_*` just passes."""
    root = Path(__file__).parent.parent
    conftest = (root / "tests" / "conftest.py").read_text()
    pytester.makeconftest(conftest.replace("GRACE_SECONDS = 2.0", "GRACE_SECONDS = 0.2"))
    pytester.makepyprojecttoml(
        f"[tool.pytest.ini_options]\nasyncio_mode = 'auto'\nfilterwarnings = ['error']\n"
        f"asyncio_default_fixture_loop_scope = 'function'\npythonpath = ['{root}']"
    )
    pytester.makepyfile(LEAKY)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist", "-rA")
    tests = set(re.findall(r"def (test_\w+)", LEAKY))
    leaky = {name for name in tests if name.startswith("test_leaks_")}
    erred = set(re.findall(r"^ERROR \S+::(\w+)", str(result.stdout), re.MULTILINE))
    assert leaky == erred
    result.assert_outcomes(passed=len(tests), errors=len(leaky))
