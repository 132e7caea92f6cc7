"""A program that ends in the middle of a stream, in a process of its own: nothing to say on standard error, no hanging."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.faultserver import EOF, REQUEST, FaultServer, Step, head
from tests.model.asking import CHAT, HELLO, SSE, streamed

STREAMING: list[Step] = [REQUEST, head("200 OK", SSE), HELLO, EOF]
WHOLE: list[Step] = [REQUEST, streamed(CHAT), EOF]

HEAD = """
import asyncio, sys
from semflux import ChatModel
model = ChatModel("vllm:x", max_retries=0, base_url=sys.argv[1])
prompt = model.prompt("hi")
"""

READING = """
async def main():
    async for event in prompt.stream():
        print(event.type.value, flush=True)
asyncio.run(main())
"""

PROGRAMS: dict[str, tuple[list[Step], str]] = {
    "the main task returns while a task reads": (
        STREAMING,
        """
async def read():
    async for event in prompt.stream():
        pass
async def main():
    task = asyncio.create_task(read())
    await asyncio.sleep(0.1)
asyncio.run(main())
""",
    ),
    "the main task returns while a subscriber listens": (
        STREAMING,
        """
async def main():
    prompt.stream().subscribe(lambda event: None)
    await asyncio.sleep(0.1)
asyncio.run(main())
""",
    ),
    "the main task returns with a closed iterator and an open model": (
        STREAMING,
        """
async def main():
    async with aiter(prompt.stream()) as events:
        async for event in events:
            if event.text: break
asyncio.run(main())
""",
    ),
    "plain code blocks and is done": (WHOLE, "print(prompt.call().block(timeout=10).text)"),
    "plain code takes the first and is done": (
        STREAMING,
        "print(prompt.stream().text().block_first(timeout=10))",
    ),
    "plain code gives up": (
        STREAMING,
        """
try: prompt.call().block(timeout=0.2)
except TimeoutError: pass
""",
    ),
}


async def start(program: str, server: FaultServer) -> asyncio.subprocess.Process:
    """*program* in a process of its own, in which every warning is an error."""
    root = str(Path(__file__).parents[2])
    environ = {**os.environ, "PYTHONPATH": root}
    return await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-W",
            "error",
            "-c",
            HEAD + program,
            f"http://127.0.0.1:{server.port}",
        ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
    )


@pytest.mark.parametrize("script, program", PROGRAMS.values(), ids=PROGRAMS.keys())
async def test_a_program_may_end_whenever_it_likes(script: list[Step], program: str) -> None:
    """L3. No "Task was destroyed", no "Unclosed", no "never retrieved"."""
    async with FaultServer(script) as server:
        process = await start(program, server)
        async with asyncio.timeout(30):
            _, err = await process.communicate()
    assert err.decode() == ""
    assert process.returncode == 0


async def test_ctrl_c_ends_a_program_in_the_middle_of_a_stream() -> None:
    async with FaultServer(STREAMING) as server:
        process = await start(READING, server)
        assert process.stdout is not None
        async with asyncio.timeout(30):
            while b"TEXT_DELTA" not in await process.stdout.readline():
                pass
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
            await server.seen[0].eof.wait()
    assert err.decode().rstrip().endswith("KeyboardInterrupt")
    for word in ("destroyed", "Unclosed", "never", "Warning", "Exception ignored"):
        assert word not in err.decode()
