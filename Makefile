# Everything a user or a developer of the gateway does starts here. `make` alone lists it.

# The demo's port, the engine build (auto, cpu or cuda) and what else to pass to `gateway serve` or to pytest.
PORT ?= 8000
ARGS ?=
# How long `make soak` takes, how many take part, and where its report goes.
MINUTES ?= 30
SESSIONS ?= 200
SOAK_OUT ?= docs/benchmarks/soak
# How many utterances `make eval-partials` says in English, and where its report goes.
STREAMS ?= 32
PARTIALS_OUT ?= docs/benchmarks/partials
# Where the report of `make bench-page` goes.
PAGE_OUT ?= docs/benchmarks/page
export ENGINE

BIN := .venv/bin
# The Python of this repository, as far as it exists.
CODE := $(wildcard gateway loadtest tests demo_model scripts deploy)

# With nothing else to do after it, the installer says what can be done next.
NEXT := $(if $(filter-out install install-dev clean clean-venv,$(MAKECMDGOALS)),,--next)

.DEFAULT_GOAL := help
.PHONY: help install install-dev demo check lint types unit test soak eval-partials bench-page format lock lock-upgrade clean clean-venv

help: ## List what can be done (this)
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PORT=8080 make demo     ENGINE=cpu|cuda make install     PYTHON=python3.12 make install"

install: ## Build .venv with the engine and the gateway from the pinned locks (2 minutes; then a no-op)
	@scripts/install.sh $(NEXT)

install-dev: ## The same, with what tests, checks and training need
	@scripts/install.sh --dev $(NEXT)

demo: install ## Start the gateway with the bundled model on http://127.0.0.1:8000
	@exec $(BIN)/gateway serve --host 127.0.0.1 --port $(PORT) $(ARGS)

check: install-dev lint types unit ## Lint, types and unit tests (about two minutes; no engine, no browser)

lint: install-dev ## ruff: rules and formatting
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

types: install-dev ## mypy --strict, and the same for the page's scripts
	$(BIN)/mypy $(CODE)
	$(BIN)/node .venv/node/node_modules/typescript/bin/tsc -p tsconfig.json

unit: install-dev ## Tests that need neither the engine nor a browser nor much time, on every core
	$(BIN)/pytest -n auto -m "not engine and not browser and not slow" $(ARGS)

# Recipes run in order, also under -j: first what fails fast, then what takes its time or needs a real engine and a
# browser, which have the machine to themselves.
test: install-dev ## check, then the slow tests and those with a real engine and a real Chromium
	@scripts/system_packages.sh
	@$(MAKE) --no-print-directory check ARGS="--cov --cov-report= $(ARGS)"
	$(BIN)/pytest -m "engine or browser or slow" --cov --cov-append $(ARGS)

soak: install-dev ## Half an hour of lost connections, stopped clients, killed engines and restarts (MINUTES=30 SESSIONS=200)
	$(BIN)/python -m loadtest soak --minutes $(MINUTES) --sessions $(SESSIONS) --out $(SOAK_OUT) $(ARGS)

eval-partials: install-dev ## Translations of unfinished speech: flicker, lag, cost and quality, in about 8 minutes (STREAMS=32)
	$(BIN)/python -m loadtest partials --streams $(STREAMS) --out $(PARTIALS_OUT) $(ARGS)

bench-page: install-dev ## The page in a real browser: weight, first paint, and 10 to 40 captions a second, in about 7 minutes
	@scripts/system_packages.sh
	$(BIN)/python -m loadtest page --out $(PAGE_OUT) $(ARGS)

format: install-dev ## Rewrite the code as ruff wants it
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

lock: install-dev ## Write what is in locks/ anew after a change of dependencies
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/lock.py

lock-upgrade: install-dev ## The same, with the newest versions
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/lock.py --upgrade

clean: ## Remove what tests and builds leave behind
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.* htmlcov build dist artifacts
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

clean-venv: ## Remove .venv
	rm -rf .venv .install.lock
