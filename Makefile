# Each target installs what it needs; all you need is make and Python >= 3.11 with venv (on Windows, from Git Bash).
ifeq ($(OS),Windows_NT)
PYTHON ?= python
SCRIPTS := Scripts
else
PYTHON ?= python3
SCRIPTS := bin
endif
# The minimum versions have wheels for this Python only.
PYTHON_OLDEST ?= python3.11
BIN := .venv/$(SCRIPTS)
BIN_OLDEST := .venv-oldest/$(SCRIPTS)
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet

.PHONY: help demo test test-oldest test-slow test-spark fuzz lint bench benchmark published figures bench-practice bench-scale reproduce dist docs clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

demo: .venv/installed-cli  ## example files, their estimate, a report and a picture, in build/demo
	$(BIN)/classprior demo --out build/demo --force

test: .venv/installed-dev  ## unit, property and contract tests, doctests, examples in the documentation
	$(BIN)/python -m pytest -n auto

# Old releases trigger deprecation warnings in newer releases of their own dependencies.
test-oldest: .venv-oldest/installed  ## the same tests with the minimum versions of all dependencies
	$(BIN_OLDEST)/python -m pytest -n auto -W ignore::DeprecationWarning -W ignore::FutureWarning

test-slow: .venv/installed-dev  ## quick versions of the experiments, killed processes and clusters
	$(BIN)/python -m pytest -m slow tests

fuzz: .venv/installed-dev  ## one minute of damaged files for the readers
	$(BIN)/python tests/fuzz/fuzz_files.py

test-spark: .venv/installed-dev  ## the recipe for Spark, for real; needs Java
	@java -version 2>/dev/null || { echo 'Spark needs Java; install a JDK and try again'; exit 1; }
	$(BIN)/python $(PIP_INSTALL) pyspark
	$(BIN)/python -m pytest -m slow tests/engines/test_spark.py

lint: .venv/installed-dev  ## style, types and docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/numpydoc lint src/classprior/*.py src/classprior/[a-z]*/*.py

bench: .venv/installed-dev  ## speed and memory, as ratios measured side by side
	$(BIN)/python benchmarks/speed_penalized_l1.py
	$(BIN)/python benchmarks/speed_least_squares.py
	$(BIN)/python benchmarks/speed_finite_slope.py
	$(BIN)/python benchmarks/speed_auto.py
	$(BIN)/python benchmarks/speed_cli.py
	$(BIN)/python benchmarks/speed_app.py

benchmark: .venv/installed-dev  ## accuracy of every method, and of other packages if installed, on public data, in build/benchmark
	$(BIN)/python benchmarks/benchmark.py

published: .venv/installed-dev  ## published draws beside the published answers, in build/published; needs tables, see its --help
	$(BIN)/python benchmarks/published.py

figures: .venv/installed-dev  ## which figures in the documentation are of the present code; fails if some are not
	$(BIN)/python experiments/freshness.py

bench-practice: .venv/installed-dev  ## accuracy with rare or biased positives, groups, weights and segments, in build/practice
	$(BIN)/python benchmarks/practice.py

bench-scale: .venv/installed-dev  ## fits in blocks of up to ten million rows (1 GB in build/scale)
	$(BIN)/python benchmarks/scale.py

reproduce: .venv/installed-dev  ## the paper's experiments and the sensitivity study, in build and the documentation; resumes after an interruption
	$(BIN)/python experiments/duplessis2017_uniforms.py
	$(BIN)/python experiments/duplessis2017_mnist.py
	$(BIN)/python experiments/duplessis2017_rates.py
	$(BIN)/python experiments/reproduction.py
	$(BIN)/python experiments/sensitivity.py --write

dist: .venv/installed-dev  ## sdist and wheel in dist, checked, and the wheel tried with the oldest and the newest dependencies
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .ci/check_dist.py dist --oldest $(PYTHON_OLDEST) --newest $(PYTHON)

docs: .venv/installed-docs  ## the documentation, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:  ## remove everything that the other targets created
	rm -rf .venv .venv-oldest build dist docs/_build docs/gallery docs/reference/generated docs/sg_execution_times.rst .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'classprior needs Python >= 3.11; try: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed-%: pyproject.toml | .venv/pyvenv.cfg
	$(BIN)/python $(PIP_INSTALL) --editable '.[$*]'
	@touch $@

.venv-oldest/installed: pyproject.toml .ci/minimum_versions.py
	$(PYTHON_OLDEST) -m venv --clear .venv-oldest
	$(BIN_OLDEST)/python .ci/minimum_versions.py > .venv-oldest/constraints.txt
	$(BIN_OLDEST)/python $(PIP_INSTALL) --editable '.[dev]' --constraint .venv-oldest/constraints.txt
	@touch $@
