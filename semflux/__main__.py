"""`python -m semflux`: the command line."""

from __future__ import annotations

import sys

from semflux.cli import main

if __name__ == "__main__":
    sys.exit(main())
