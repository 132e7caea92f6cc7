"""`semflux dialects`: which wire formats are spoken, and with whom."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from semflux.cli.outcome import OK
from semflux.cli.printer import BOLD, Printer, to_json
from semflux.dialects import DIALECTS
from semflux.dialects.vendors import VENDORS, Vendor


def run_dialects(arguments: argparse.Namespace, out: Printer, err: Printer) -> int:
    """`semflux dialects [--json]`; gives the exit status."""
    if arguments.json:
        out.write(to_json(listing()) + "\n")
        return OK
    _table(
        out,
        ("DIALECT", "WHAT", "FRAMING"),
        [(dialect.name, dialect.title, dialect.framing) for dialect in DIALECTS.values()],
    )
    out.write("\n")
    _table(
        out,
        ("MODEL", "DIALECT", "KEY", "ADDRESS"),
        [
            (_model(prefix, vendor), vendor.dialect, _key(vendor), _address(prefix, vendor))
            for prefix, vendor in VENDORS.items()
        ],
    )
    return OK


def listing() -> dict[str, Any]:
    """Dialects and vendors as one JSON-able object."""
    return {
        "dialects": [
            {"name": dialect.name, "title": dialect.title, "framing": dialect.framing}
            for dialect in DIALECTS.values()
        ],
        "vendors": [
            {
                "prefix": prefix,
                "dialect": vendor.dialect,
                "base_url": vendor.base_url,
                "env_keys": list(vendor.env_keys),
                "env_base_urls": list(vendor.env_base_urls),
                "key_required": vendor.key_required,
                "model_required": vendor.model_required,
            }
            for prefix, vendor in VENDORS.items()
        ],
    }


def _model(prefix: str, vendor: Vendor) -> str:
    if prefix == "local":
        return "local, local:FILE.gguf"
    return f"{prefix}:NAME"


def _key(vendor: Vendor) -> str:
    if not vendor.env_keys:
        return "none needed"
    return " or ".join(vendor.env_keys) + ("" if vendor.key_required else " (if any)")


def _address(prefix: str, vendor: Vendor) -> str:
    if prefix == "local":
        return "started on first use"
    return " or ".join([*vendor.env_base_urls, *([vendor.base_url] if vendor.base_url else [])])


def _table(out: Printer, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for number, row in enumerate((head, *rows)):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        out.write("  ".join(cells).rstrip() + "\n", BOLD if number == 0 else None)


__all__ = ("listing", "run_dialects")
