# Everything a user or a developer of the gateway does starts here. `make` alone lists it.

# The demo's port, the engine build (auto, cpu or cuda) and what else to pass to `gateway serve` or to pytest.
PORT ?= 8000
ARGS ?=
# A folder with a model, or its name on the Hugging Face hub; without it the demo has the bundled one.
MODEL ?=
# How long `make soak` takes, how many take part, how many workers the gateway has if it has any, and where its report
# goes.
MINUTES ?= 30
SESSIONS ?= 200
WORKERS ?=
SOAK_OUT ?= docs/benchmarks/soak
# Where the figures of `make abuse` go.
ABUSE_OUT ?= docs/benchmarks/abuse
# How many utterances `make eval-partials` says in English, and where its report goes.
STREAMS ?= 32
PARTIALS_OUT ?= docs/benchmarks/partials
# Where the reports of `make loadtest` go, and those of `make bench-peers` and its like: a folder each, below these.
LOADTEST_OUT ?= artifacts/loadtest
BENCH_OUT ?= docs/benchmarks
export ENGINE

BIN := .venv/bin
# The Python of this repository, as far as it exists.
CODE := gateway loadtest tests conftest.py demo_model docs scripts examples
# Its scripts, and what formats them (.prettierrc.json, .prettierignore).
SCRIPTS := '{web_demo,examples,gateway,tests}/**/*.{js,mjs,jsx,tsx}'
PRETTIER := $(BIN)/node .venv/node/node_modules/prettier/bin/prettier.cjs --log-level warn

# With nothing else to do after it, the installer says what can be done next.
NEXT := $(if $(filter-out install install-dev clean clean-venv,$(MAKECMDGOALS)),,--next)

.DEFAULT_GOAL := help
.PHONY: help install install-dev demo stack check lint types unit test test-long soak abuse foreign eval-partials format packages release docs \
	page lock lock-upgrade \
	loadtest bench-peers bench-journey bench-gateway bench-sweep bench-recommend clean clean-venv \
	image image-test clean-image

help: ## List what can be done (this)
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PORT=8080 make demo     ENGINE=cpu|cuda make install     PYTHON=python3.12 make install"

install: ## Build .venv with the engine and the gateway from the pinned locks (2 minutes; then a no-op)
	@scripts/install.sh $(NEXT)

install-dev: ## The same, with what tests, checks and training need
	@scripts/install.sh --dev $(NEXT)

demo: install ## Start the gateway with the bundled model on http://127.0.0.1:8000, or with yours (MODEL=folder or hub name)
	@exec $(BIN)/gateway serve --host 127.0.0.1 --port $(PORT) $(if $(MODEL),--model "$(MODEL)") $(ARGS)

stack: install ## Two gateways with TLS, tokens, Redis, nginx and Prometheus on https://localhost:8443, by the files of deploy/
	@scripts/system_packages.sh redis
	@scripts/deployment_tools.sh stack
	@exec $(BIN)/python -m scripts.stack $(ARGS)

check: install-dev lint types unit ## Lint, types and unit tests (about three minutes on two cores; no engine, no browser, but Redis)

lint: install-dev ## ruff: rules and formatting; prettier: that of the scripts
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(PRETTIER) --check $(SCRIPTS)

types: install-dev ## mypy --strict, and the same for the page's scripts
	$(BIN)/mypy $(CODE)
	$(BIN)/node .venv/node/node_modules/typescript/bin/tsc -p tsconfig.json

# What is compiled is kept for the next run, even where the environment says otherwise: hundreds of processes start here.
unit test test-long: export PYTHONDONTWRITEBYTECODE =
unit: install-dev ## Tests that need neither the engine nor a browser nor much time, on every core (ARGS=--cov: coverage, slower)
	@scripts/system_packages.sh redis
	$(BIN)/pytest -n auto --dist worksteal -m "not engine and not browser and not slow and not image and not long" $(ARGS)

# Recipes run in order, also under -j: first what fails fast; then the browser and what takes seconds, with simulated
# engines, in four at once, as a browser waits most of the time; last real engines, in two, as starting one is work.
# Each file is in one of them, whose tests share a gateway, and in one of them all that share an engine, in the order
# that conftest.py says.
test: install-dev ## check, then the tests with a real Chromium, the slow ones and those with a real engine
	@scripts/system_packages.sh
	@scripts/deployment_tools.sh
	@$(MAKE) --no-print-directory check
	$(BIN)/pytest -n 4 --dist loadfile -m "(browser or slow) and not engine and not long" $(ARGS)
	$(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "engine and not long" $(ARGS)

test-long: install-dev ## What takes minutes by nature, before a release: property tests at length, load tests on real engines, soak, image
	@scripts/system_packages.sh
	@scripts/deployment_tools.sh
	$(BIN)/pytest -n auto --dist worksteal -m "hypothesis and not long" --hypothesis-profile long $(ARGS)
	$(BIN)/pytest -n 2 --dist loadgroup -m long $(ARGS)
	@$(MAKE) --no-print-directory soak MINUTES=10 SOAK_OUT=artifacts/soak
	@$(MAKE) --no-print-directory image-test

# Apart from `make test`: it takes minutes, gigabytes of disk and, without Docker, root.
image: ## Build the container image translation-gateway:cpu (ENGINE=cuda: the other), with Docker or without a daemon, in about 5 minutes
	@python3 scripts/image.py build $(ARGS)

image-test: install-dev ## Build the image, run it read-only, translate through it and stop it, in about 7 minutes
	@$(BIN)/python scripts/image.py build --target cpu
	$(BIN)/pytest -m image tests/image $(ARGS)

clean-image: ## Remove the images that were built
	@python3 scripts/image.py clean

soak: install-dev ## Half an hour of lost connections, stopped clients, killed engines and restarts (MINUTES=30 SESSIONS=200 WORKERS=3)
	$(BIN)/python -m loadtest soak --minutes $(MINUTES) --sessions $(SESSIONS) $(if $(WORKERS),--workers $(WORKERS)) \
		--out $(SOAK_OUT) $(ARGS)

abuse: install-dev ## One rude client after another beside an honest session: what the gateway withstands, in about 2 minutes
	ABUSE_S=6 ABUSE_OUT=$(ABUSE_OUT) $(BIN)/pytest -q tests/abuse/test_abuse.py $(ARGS)
	@cat $(ABUSE_OUT)/table.md

foreign: install-dev ## The suites and tools of others against a gateway: LibreTranslate, schemathesis, WebSocket libraries, Kotlin, … (ARGS=suite)
	@$(BIN)/python -m scripts.foreign $(ARGS)

eval-partials: install-dev ## Translations of unfinished speech: flicker, lag, cost and quality, in about 8 minutes (STREAMS=32)
	$(BIN)/python -m loadtest partials --streams $(STREAMS) --out $(PARTIALS_OUT) $(ARGS)

# The options of these are for a CPU with two cores. `sweep` and `recommend` end with 1 also when a report was written that
# says that the driver was the limit, which cannot be helped where the engine takes every core: without one they failed.
loadtest: install-dev ## What this machine carries, and what the gateway costs beside the engine alone, in about 5 minutes
	@rm -f $(LOADTEST_OUT)/sweep/table.md
	$(BIN)/python -m loadtest sweep --start 16 --step-s 6 --runs 10 --objective-ms 1000 --time-limit-s 180 \
	  --out $(LOADTEST_OUT)/sweep $(ARGS) || test -f $(LOADTEST_OUT)/sweep/table.md
	$(BIN)/python -m loadtest peers --peers gateway,asyncllm --in-flight 1,16 --repetitions 3 --round-s 4 \
	  --out $(LOADTEST_OUT)/peers $(ARGS)
	@echo
	@echo "Reports (docs/loadtest.md says how to read them, and how to measure a gateway of your own):"
	@echo "  $(LOADTEST_OUT)/sweep/table.md, plot.png  what this machine carries, and what happens beyond"
	@echo "  $(LOADTEST_OUT)/peers/table.md, plot.png  the gateway beside the engine called directly"

bench-peers: install-dev ## The gateway, vLLM's own server and the engine alone in turn, in about 6 minutes (BENCH_OUT=folder)
	$(BIN)/python -m loadtest peers --in-flight 1,4,16 --repetitions 3 --round-s 6 --out $(BENCH_OUT)/peers-cpu $(ARGS)

bench-journey: install-dev ## From one worker behind a queue to the gateway, in about 8 minutes
	$(BIN)/python -m loadtest journey --round-s 2 --out $(BENCH_OUT)/journey-cpu $(ARGS)

bench-gateway: install-dev ## The gateway without an engine: 10,000 idle sessions, 167 meetings, 2,000 readers, in about 3 minutes
	$(BIN)/python -m loadtest run --engine simulated --meetings 0 --idle 10000 \
	  --out $(BENCH_OUT)/gateway-alone/idle $(ARGS)
	$(BIN)/python -m loadtest run --engine simulated --meetings 167 --allow-bottleneck \
	  --out $(BENCH_OUT)/gateway-alone/active $(ARGS)
	$(BIN)/python -m loadtest run --engine simulated --meetings 1 --readers 2000 --allow-bottleneck \
	  --out $(BENCH_OUT)/gateway-alone/readers $(ARGS)

bench-sweep: install-dev ## One gateway under rising load until it is overloaded, in about 5 minutes
	@rm -f $(BENCH_OUT)/sweep-cpu/table.md
	$(BIN)/python -m loadtest sweep --start 16 --step-s 15 --objective-ms 1000 --time-limit-s 400 \
	  --out $(BENCH_OUT)/sweep-cpu $(ARGS) || test -f $(BENCH_OUT)/sweep-cpu/table.md

bench-recommend: install-dev ## Which size of the batch suits meetings on this machine, in about 8 minutes
	@rm -f $(BENCH_OUT)/recommend-cpu/table.md
	$(BIN)/python -m loadtest recommend --max-num-seqs 8,16,32 --start 64 --step-s 8 --runs 8 --objective-ms 1000 \
	  --time-limit-s 460 --out $(BENCH_OUT)/recommend-cpu $(ARGS) || test -f $(BENCH_OUT)/recommend-cpu/table.md

format: install-dev ## Rewrite the code as ruff and prettier want it
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	$(PRETTIER) --write $(SCRIPTS)

packages: ## Build what a release is made of into dist/: the gateway, the clients, lists of packages, checksums (no engine)
	@scripts/install.sh --build
	$(BIN)/python -m scripts.packages dist

release: install-dev ## Try a release, up to publishing: VERSION=1.4.0; TAG=1 commits and tags it, here only
	@$(BIN)/python -m scripts.release $(VERSION) $(if $(TAG),--tag)

page: install-dev ## Build web_demo/built, the page as browsers get it, from its sources in web_demo
	$(BIN)/python -m scripts.page

docs: install-dev ## Write again what is generated (fields, dashboards), and make the site of docs/ in build/site
	$(BIN)/python -m scripts.protocol_fields
	$(BIN)/python -m scripts.dashboards
	$(BIN)/sphinx-build -q -W --keep-going -b html -c docs -d build/doctrees . build/site

lock: install-dev ## Write what is in locks/ anew after a change of dependencies
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/lock.py

lock-upgrade: install-dev ## The same, with the newest versions
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/lock.py --upgrade

clean: ## Remove what tests and builds leave behind
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov build dist artifacts
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

clean-venv: ## Remove .venv
	rm -rf .venv .install.lock
