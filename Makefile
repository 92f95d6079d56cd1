# Every target makes what it needs: a clone, make and Python >= 3.11 with venv are enough.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: help demo test test-slow lint bench bench-scale reproduce docs clean
.DELETE_ON_ERROR:

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/installed-cli  ## scikit-learn's digits at three known priors: a table, a picture, a report
	$(BIN)/classprior demo --out build/demo --force

test: .venv/installed-dev  ## unit, property and contract tests, doctests, README
	$(BIN)/python -m pytest -n auto

test-slow: .venv/installed-dev  ## the experiments, quick, against what they are expected to show; killed and clustered processes
	$(BIN)/python -m pytest -m slow tests

lint: .venv/installed-dev  ## style, types and docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/numpydoc lint $$(find src -name '*.py' -not -path '*/classprior/_*/*')

bench: .venv/installed-dev  ## speed and memory, as ratios measured side by side
	$(BIN)/python benchmarks/speed_penalized_l1.py
	$(BIN)/python benchmarks/speed_least_squares.py
	$(BIN)/python benchmarks/speed_finite_slope.py
	$(BIN)/python benchmarks/speed_auto.py
	$(BIN)/python benchmarks/speed_cli.py

bench-scale: .venv/installed-dev  ## fits in blocks of up to ten million rows, made in build/scale (1 GB)
	$(BIN)/python benchmarks/scale.py

reproduce: .venv/installed-dev  ## the paper's experiments and the sensitivity study, in build; goes on where it was stopped
	$(BIN)/python experiments/duplessis2017_uniforms.py
	$(BIN)/python experiments/duplessis2017_mnist.py
	$(BIN)/python experiments/duplessis2017_rates.py
	$(BIN)/python experiments/sensitivity.py

docs: .venv/installed-dev  ## the documentation as a site, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:  ## what the other targets made
	rm -rf .venv build dist docs/_build docs/api .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'classprior needs Python >= 3.11; try: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed-%: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[$*]'
	@touch $@
