# `make run` and `make test` set the checkout up by themselves; see CONTRIBUTING.md.
PYTHON ?= python3
ENV := .venv/bin/python
TEST ?=
PYTEST := $(ENV) -m pytest

PEERS := build/peers
ARGS ?=

.PHONY: help run test setup setup-dev check-lint check-types check-tests check-one check-slow format \
  bench-peers

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

run: setup ## set up, then open the window (or the terminal chat where there is no display)
	@$(ENV) -m paceline

test: setup-dev check-lint check-types check-tests ## set up, then lint, types and every quick test

setup: need-python ## set up what running needs
	@$(PYTHON) packaging/setup

setup-dev: need-python ## set up what running, testing and linting need
	@$(PYTHON) packaging/setup --dev

check-lint: setup-dev ## ruff: rules and layout
	$(ENV) -m ruff check .
	$(ENV) -m ruff format --check .

check-types: setup-dev ## mypy, strict
	$(ENV) -m mypy
	$(ENV) -m mypy packaging/hatch_build.py

check-tests: setup-dev ## every test that is not marked slow
	$(PYTEST) -m "not slow"

check-one: setup-dev ## one test: make check-one TEST=tests/unit/core/test_borders.py
	$(PYTEST) $(TEST)

check-slow: setup-dev ## the tests on the Qwen pair, which skip where it was not fetched
	$(PYTEST) -m slow

format: setup-dev ## let ruff mend what it can
	$(ENV) -m ruff check --fix .
	$(ENV) -m ruff format .

bench-peers: setup ## write docs/benchmarks.md: Paceline beside llama.cpp and transformers (minutes)
	@test -x $(PEERS)/bin/python || $(ENV) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet -r benchmarks/peers/requirements.txt
	$(ENV) -m benchmarks.compare --peers-python $(PEERS)/bin/python $(ARGS)

.PHONY: need-python
need-python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "Paceline needs Python 3.11 or newer and there is no $(PYTHON)." \
	    "Install one (Debian, Ubuntu: sudo apt-get install python3 python3-venv)." >&2; exit 1; }
