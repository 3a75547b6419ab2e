# Two commands set everything up on a machine with Python (3.11 or newer), make and g++:
#   make demo   installs into .venv and runs the main job
#   make test   installs into .venv and runs the whole test suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo test lint clean

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) '.[dev,cuda]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/cupilot optimize examples/max_pool/problem.py --budget 90s

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
