"""Holds branch coverage: 95 % overall, 100 % in the rooms that do no I/O.

Usage: python .ci/coverage_gate.py coverage.json
Exit status 1 names each file that falls short, with its lines and branches.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

OVERALL = 95.0
ROOT = Path(__file__).parent.parent


def sans_io() -> set[str]:
    """The rooms above the line, from where their order is held."""
    for statement in ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "SANS_IO":
            return set(ast.literal_eval(statement.value))
    raise SystemExit("coverage gate: no SANS_IO in tests/test_layers.py")


def room_of(file: str) -> str:
    """The room of "semflux/wire/sse.py" is "wire", that of "semflux/errors.py" is "errors"."""
    return Path(file).parts[1].removesuffix(".py")


def first(items: list[Any], count: int = 10) -> str:
    """The first *count* of *items*, and how many more there are."""
    more = f" and {len(items) - count} more" if len(items) > count else ""
    return ", ".join(str(item) for item in items[:count]) + more or "none"


def main(report_file: str) -> int:
    report: dict[str, Any] = json.loads(Path(report_file).read_text(encoding="utf-8"))
    if not report["meta"]["branch_coverage"]:
        print("coverage gate: branches were not measured")
        return 1
    rooms = sans_io()
    short: list[str] = []
    held = 0
    for file, data in sorted(report["files"].items()):
        if room_of(file) not in rooms:
            continue
        held += 1
        if data["missing_lines"] or data["missing_branches"]:
            branches = [f"{start}->{end}" for start, end in data["missing_branches"]]
            short.append(f"{file}: lines {first(data['missing_lines'])}; branches {first(branches)}")
    total: float = report["totals"]["percent_covered"]
    for line in short:
        print(f"coverage gate: not 100 %: {line}")
    print(
        f"coverage gate: {total:.2f} % overall (at least {OVERALL:.0f}), {held - len(short)} of {held} files at 100 %"
    )
    return 1 if short or total < OVERALL or not held else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
