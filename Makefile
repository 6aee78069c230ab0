# Two commands for users: `make demo` and `make test`.
# What a command needs is installed into .venv when it first runs; a second run installs nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEXT ?= the food is great and the selection on the menu is great but the service is not bad prices are fine
REPORT ?= whence-report.html
# The text is data: it reaches the program through the environment, so neither make nor the shell
# reads it.
ifneq ($(origin TEXT),file)
override TEXT := $(value TEXT)
endif
export TEXT REPORT
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
# Images of containers often forbid Python to keep what it has compiled. Every process of the tests
# would compile whence and the tests anew, and with shapes checked that takes half a minute each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all check lint types layers docs bench clean
help:  ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

demo: $(VENV)/.installed  ## explain a sentence with every method; a table here, and an HTML report
	@echo "==> whence compare, on the bundled sentiment model"
	@$(BIN)/whence compare --model sentiment --html "$$REPORT" -- "$$TEXT"

# tests/conftest.py says which tests go to which of the two processes
PYTEST := $(BIN)/python -m pytest -n 2 -q

test: $(VENV)/.installed-dev  ## run the tests, but for long simulations and whole sweeps
	@echo "==> pytest"
	@$(PYTEST) -m "not slow"

# Shapes are checked in the short tests, which run all of the code; long simulations and whole
# sweeps call the same functions more often. No doctest is slow: only tests is searched for those.
test-all: $(VENV)/.installed-dev  ## run every test; in the short ones shapes and types are checked
	@echo "==> pytest, long simulations and whole sweeps"
	@$(PYTEST) -m slow tests
	@echo "==> pytest, all others, with shapes and types checked"
	@WHENCE_CHECK_SHAPES=1 $(PYTEST) -m "not slow"

check: lint types layers docs test-all  ## everything that CI runs

lint: $(VENV)/.installed-dev  ## ruff
	@echo "==> ruff"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.installed-dev  ## pyright
	@echo "==> pyright"
	@$(BIN)/pyright

layers: $(VENV)/.installed-dev  ## who may import whom
	@echo "==> import-linter"
	@$(BIN)/lint-imports

docs: $(VENV)/.installed-dev  ## build the documentation, strictly
	@echo "==> mkdocs build --strict"
	@$(BIN)/mkdocs build --strict --quiet --site-dir site

bench: $(VENV)/.installed-dev  ## ratios to the floor and to peers
	@echo "==> bench"
	@$(BIN)/python -m bench

# What the commands of README, docs/getting-started.md and the tutorials need, and nothing for
# developers; tests/test_fresh.py runs all of them without anything else.
DEMO_NEEDS := .[figures,runs,tables]

# torch comes first and alone, so that nothing can pull in another version of it
$(VENV)/bin/python:
	@echo "==> creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "whence needs Python 3.11 or newer; say which with make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "==> installing whence and what it needs (pinned by constraints.txt) into $(VENV)"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '$(DEMO_NEEDS)'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "==> installing the tools for tests, lint, types and docs into $(VENV)"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,docs,dev]'
	@touch $@

clean:  ## remove what was made
	rm -rf $(VENV) site whence-report.html
	rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench training -name __pycache__ -prune -exec rm -rf {} +
