# make demo    install, then watch a run of the built-in simulation until its alarm sounds
# make test    install the developer packages, then lint, types and the tests, but for those marked slow; five minutes
# make test-all   the same with the slow tests and more examples of every law, as .ci/run does
# make lint    lint and types alone
# make product the simulation's monitor in monitors/lab and its automaton with picture in automata/lab, built anew
# make bench   all benchmarks on the real runs in RUNS (default .traces): tables on the screen, JSON beside them;
#              three to four hours on two cores, resumable
# make bench-quick   a smaller version, about five minutes, into build/bench-quick
#
# PYTHON names the Python to build the environment with (3.11 or newer), VENV where the environment stands.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST_ARGS ?=
RUNS ?= .traces
MONITOR ?= build/bench-monitor

.PHONY: demo test test-all every-test lint ruff types product bench bench-quick
.DEFAULT_GOAL := test

demo: $(VENV)/.installed-all
	$(BIN)/prefixguard demo

# On two processes, each with one thread for its sums: more of them only fight. Compiled tests are kept, which halves
# the start. Files go in the order of tests/conftest.py: by the number of their tests, the slowest would come last.
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
test: lint
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-all: lint every-test

every-test: $(VENV)/.installed-dev
	HYPOTHESIS_PROFILE=thorough $(PYTEST) $(PYTEST_ARGS)

lint: ruff types

ruff: $(VENV)/.installed-dev
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

product: $(VENV)/.installed-dev
	$(BIN)/prefixguard train --config monitors/lab.toml --out monitors/lab --overwrite
	$(BIN)/prefixguard export monitors/lab --to dfa --max-states 32 --out automata/lab --overwrite

# Figures side by side on two cores, timings alone after them. Every script keeps what is done and goes on from there.
FIGURES = accuracy backends all_sets leaks alarms leak_worth controls attribution observability escalation induction
bench: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory -j2 $(addprefix figures-,$(FIGURES))
	$(BIN)/python benchmarks/recovery.py
	$(BIN)/python benchmarks/automaton_step.py
	$(BIN)/python benchmarks/training.py $(RUNS)/tau_bench --adapter tau_bench
	$(BIN)/prefixguard train $(RUNS)/tau_bench --adapter tau_bench --out $(MONITOR) --overwrite
	$(BIN)/python benchmarks/latency.py $(MONITOR)
	$(BIN)/python benchmarks/memory.py $(MONITOR)
	$(BIN)/python benchmarks/escalation_load.py
	$(BIN)/python benchmarks/reproduce/run.py --what

figures-observability figures-escalation: figures-%:
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/$*.py

figures-%:
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/$*.py $(RUNS)

# The same scripts on small sets and with quick monitors, into build/bench-quick.
QUICK = build/bench-quick
bench-quick: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory -j2 quick-all_sets quick-backends quick-leaks quick-alarms quick-controls quick-observability

quick-all_sets:
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/all_sets.py $(RUNS) --backend gbdt --out $(QUICK)/all_sets
quick-backends:
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/backends.py $(RUNS) --sets webshop_react --out $(QUICK)/backends
quick-leaks:
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/leaks.py $(RUNS) --sets webshop_react tau2 --out $(QUICK)
quick-alarms:
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/alarms.py $(RUNS) --sets webshop_react --out $(QUICK)/alarms
quick-controls:
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/controls.py $(RUNS) --sets webshop_react --out $(QUICK)
quick-observability:
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/observability.py --out $(QUICK)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "PrefixGuard needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version`." \
		"Name another one: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@
