# make demo    install, then watch a run of the built-in lab until its alarm sounds
# make test    install the developer packages, then lint, types and all tests
# make lint    lint and types alone
# make product the lab's monitor in monitors/lab and its automaton with picture in automata/lab, built anew
# make bench   all benchmarks on the real runs in RUNS (default .traces): tables on the screen, JSON beside them
#
# PYTHON names the Python to build the environment with (3.11 or newer), VENV where the environment stands.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST_ARGS ?=
RUNS ?= .traces
MONITOR ?= build/bench-monitor

.PHONY: demo test lint product bench
.DEFAULT_GOAL := test

demo: $(VENV)/.installed-all
	$(BIN)/prefixguard demo

test: lint
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/mypy

product: $(VENV)/.installed-dev
	$(BIN)/prefixguard train --config monitors/lab.toml --out monitors/lab --overwrite
	$(BIN)/prefixguard export monitors/lab --to dfa --max-states 32 --out automata/lab --overwrite

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/accuracy.py $(RUNS)
	$(BIN)/python benchmarks/backends.py $(RUNS)
	$(BIN)/python benchmarks/recovery.py
	$(BIN)/python benchmarks/training.py $(RUNS)/tau_bench --adapter tau_bench
	$(BIN)/prefixguard train $(RUNS)/tau_bench --adapter tau_bench --out $(MONITOR) --overwrite
	$(BIN)/python benchmarks/latency.py $(MONITOR)
	$(BIN)/python benchmarks/memory.py $(MONITOR)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "PrefixGuard needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version`." \
		"Name another one: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@
