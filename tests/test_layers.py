"""The order of the rooms: who may import whom, and what must not be imported at all.

Rule 1. A room imports only rooms above it in `ROOMS`.
Rule 2. No room above the line imports reactivex, aiohttp or asyncio, nor loads them through others.
Rule 3. Nothing is imported inside a function but optional packages, aiohttp and the modules that
        import aiohttp, and importlib.metadata, which is slow to load; each with its reason in a comment on the line or above it.
Imports for type checkers only are free.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "semflux"

SANS_IO = (
    "errors", "frozen", "secret", "redaction", "usage", "stage", "messages", "request", "http", "fault", "http_errors",
    "wire", "response", "events", "contract", "pieces", "fold", "state", "blocks", "calls", "normalize", "aggregate",
    "terminate", "filters", "dialects", "decoder", "retry", "matching", "refold", "screen", "tool_checks", "cutting",
    "json_paths", "partial_json",
)  # fmt: skip
"""The rooms above the line, ground floor first."""

ROOMS = (
    *SANS_IO,
    "clock", "operators", "flux", "transport", "local", "model_pump", "model", "testing", "cli", "__init__", "__main__",
)  # fmt: skip

BELOW_THE_LINE = {"reactivex", "aiohttp", "asyncio"}

OPTIONAL = {"aiohttp", "jsonschema", "referencing", "uvloop", "xllamacpp"}
"""Top-level packages that may be imported late."""


class Import(NamedTuple):
    module: str
    line: int
    late: bool
    """Whether it stands inside a function."""


def name_of(path: Path) -> str:
    """The module's dotted name, packages by their own name: "semflux.wire.sse", "semflux.wire"."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def room_of(module: str) -> str:
    """The room of a module of ours; "__init__" for the root."""
    return [*module.split("."), "__init__"][1]


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(path: Path) -> Iterator[Import]:
    """The imports of a file that are run, resolved to absolute names."""

    def visit(node: ast.AST, late: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for otherwise in node.orelse:
                yield from visit(otherwise, late)
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, late)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: relative import"
            assert node.module is not None
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield Import(submodule if submodule in MODULES else node.module, node.lineno, late)
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, late)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), late=False)


def test_every_room_has_its_place() -> None:
    """A new module at the top level must be entered in `ROOMS`."""
    assert {room_of(name) for name in MODULES} <= set(ROOMS)


@pytest.mark.parametrize("name", MODULES)
def test_a_room_imports_only_rooms_above_it(name: str) -> None:
    """Rule 1; inside a room the modules are free to import each other."""
    room = room_of(name)
    allowed = {*ROOMS[: ROOMS.index(room)], room}
    upward = [
        f"{MODULES[name].name}:{found.line} imports {found.module}"
        for found in imports_of(MODULES[name])
        if found.module.split(".")[0] == "semflux" and room_of(found.module) not in allowed
    ]
    assert upward == []


@pytest.mark.parametrize("name", [name for name in MODULES if room_of(name) in SANS_IO])
def test_no_room_above_the_line_imports_io(name: str) -> None:
    """Rule 2, by the source."""
    found = {found.module.split(".")[0] for found in imports_of(MODULES[name])}
    assert found & BELOW_THE_LINE == set()


def test_no_room_above_the_line_loads_io() -> None:
    """Rule 2, by what is loaded: all of these rooms in a fresh interpreter, without the root package."""
    names = [name for name in MODULES if room_of(name) in SANS_IO]
    program = f"""
import importlib, sys, types
root = types.ModuleType("semflux")
root.__path__ = [{str(PACKAGE)!r}]
sys.modules["semflux"] = root
for name in {names!r}:
    importlib.import_module(name)
print(*sorted({BELOW_THE_LINE!r} & set(sys.modules)))
"""
    assert run(program) == ""


def test_importing_semflux_loads_neither_aiohttp_nor_optional_packages() -> None:
    """`import semflux` stays light: the first exchange imports aiohttp."""
    assert run(f"import semflux, sys; print(*sorted({OPTIONAL!r} & set(sys.modules)))") == ""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", MODULES)
def test_a_late_import_is_optional_and_says_why(name: str) -> None:
    """Rule 3."""
    path = MODULES[name]
    lines = path.read_text(encoding="utf-8").splitlines()
    wrong: list[str] = []
    for found in imports_of(path):
        if not found.late:
            continue
        where = f"{path.name}:{found.line} imports {found.module}"
        if not (
            found.module == "importlib.metadata"
            or found.module.split(".")[0] in OPTIONAL
            or imports_aiohttp(found.module)
        ):
            wrong.append(f"{where} late")
        elif "#" not in lines[found.line - 1] and not lines[found.line - 2].lstrip().startswith("#"):
            wrong.append(f"{where} late without a reason")
    assert wrong == []


def imports_aiohttp(module: str) -> bool:
    return module in MODULES and any(
        found.module.split(".")[0] == "aiohttp" and not found.late for found in imports_of(MODULES[module])
    )
