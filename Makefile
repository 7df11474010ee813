# The two commands: `make demo` and `make test`. Both set up everything they need in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 3

.PHONY: site recording demo test test-fast test-ci test-agents test-sweep coverage mutants fuzz lint bench gate-quality catalogue catalogue-check clean system-tools docs lock release

demo: $(VENV)/.installed
	@$(BIN)/proofstone demo

test: $(VENV)/.installed-dev system-tools
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not sweep and not ci and not agents"

# The ordinary suite, with further whole runs and larger samples; `.ci/run` starts this and the next.
test-ci: $(VENV)/.installed-dev system-tools
	PROOFSTONE_TEST_CI=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not sweep and not agents"

# Real coding agents, each with a model that is played; npm installs them where they are missing.
test-agents: $(VENV)/.installed-dev system-tools
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "agents and not sweep"

# The pure tests only, for the inner loop: no programs, no databases, few examples.
test-fast: $(VENV)/.installed-dev
	PROOFSTONE_TEST_FAST=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not sweep" $$($(BIN)/python -m tests.tiers)

test-sweep: $(VENV)/.installed-dev system-tools
	PROOFSTONE_TEST_SWEEP=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# Lines and branches that the ordinary suite comes by, also in the processes that it starts; slow.
coverage: $(VENV)/.installed-dev system-tools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'coverage>=7.10'
	rm -rf .coverage-data && mkdir .coverage-data
	$(BIN)/python -m coverage run --rcfile=tests/coverage.ini -m pytest -q -n $(JOBS) --dist worksteal -m "not sweep and not ci and not agents"
	$(BIN)/python -m coverage combine --quiet --rcfile=tests/coverage.ini
	$(BIN)/python -m coverage report --rcfile=tests/coverage.ini

# Changed rules, and how many of them tests notice that start no whole run.
mutants: $(VENV)/.installed-dev
	$(BIN)/python -m tests.mutants --count 50 --seed $(SEED)

# Changed inputs for every reader of outside text, or for one: `make fuzz READER=plan INPUTS=10000`.
INPUTS ?= 1000000
SEED ?= 1

fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS) --seed $(SEED) --state .fuzz-$(SEED).json $(if $(READER),--reader $(READER))

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/check.py
	$(BIN)/python -m release.lock

docs: $(VENV)/.installed-dev
	$(BIN)/python docs/check.py --write

# The manual as a site, in build/site. A link that leads nowhere, and a page without a place, are errors.
site: $(VENV)/.installed-site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# The picture of the README, recorded from the real program.
recording: $(VENV)/.installed-dev
	$(BIN)/python docs/recording.py

# Every trick, tried; the tables go into docs/catalogue.md and docs/catalogue-composed.md.
catalogue: $(VENV)/.installed-dev system-tools
	$(BIN)/python docs/catalogue.py --write
	@cat docs/catalogue.md docs/catalogue-composed.md

# All that the catalogue lists, and a sample of the composed tricks.
catalogue-check: $(VENV)/.installed-dev system-tools
	$(BIN)/python docs/catalogue.py

# The versions and hashes that a release is built from; needs uv and a package index.
lock: $(VENV)/.installed-dev
	$(BIN)/python -m release.lock --write

# sdist, wheel, bill of materials and hashes of the commit that is checked out, in dist/.
release: $(VENV)/.installed-dev
	$(BIN)/python -m release.build

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

# A check of every case of a set of right and wrong changes, made from published packages; hours on a small machine.
# It goes on where it was; `rm -r .gate-quality` begins anew. The page is docs/gate-quality.md.
gate-quality: $(VENV)/.installed-dev system-tools
	@test -d .gate-quality/cases || $(BIN)/python -m benchmarks.gate_quality build .gate-quality/cases
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/python -m benchmarks.gate_quality run .gate-quality/cases --results .gate-quality/results.jsonl --jobs 2 --page

# Programs that the tests drive, from Debian's packages where we may install them.
system-tools:
	@sh tests/install-tools.sh

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

# What the benchmarks compare with is installed by them alone.
$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

$(VENV)/.installed-site: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[site]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
