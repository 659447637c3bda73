# Two commands from nothing: `make serve` and `make test`. Everything lands in .venv; to begin again: `make clean`.
# The rest of the command line goes into ARGS, as in: make serve ARGS="--port 9000"

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# The locks are whole and carry hashes: nothing else is resolved, and nothing is compiled.
INSTALL := $(PIP) install --require-hashes --no-deps --only-binary :all:
LOCKED := requirements/build.txt requirements/run.txt
BENCH := $(VENV)/bench/upstream $(VENV)/bench/load
ARGS ?=

.DELETE_ON_ERROR:
.PHONY: help install install-dev weights serve test quick test-shortcuts-off drive compliance check format lint types language docs docs-artefacts wire-diff fidelity docs-contents text-models providers dialect-pages mutation sbom fuzz soak bench bench-gate bench-ablation bench-peers fmt lock clean docs-site docs-images

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' Makefile | expand -t 14

install: $(VENV)/run.stamp  ## .venv/bin/xenoglot, with the gateway and the embedded model's runtime

install-dev: $(VENV)/dev.stamp  ## the same, and what the tests and checks need

weights: install  ## the embedded model's weights, fetched once into your cache
	@$(BIN)/xenoglot pull

serve: install weights  ## a gateway in front of the embedded model
	@exec $(BIN)/xenoglot serve $(ARGS)

test: install-dev weights $(VENV)/torch.stamp $(VENV)/tmux.stamp $(VENV)/chromium.stamp $(VENV)/deploy.stamp $(VENV)/lock.stamp  ## every test; a skipped one counts as failed
	@$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder $(ARGS)

quick: install-dev  ## the tests of the model, the codecs, the dialects and the policies: under a minute on two cores
	@$(BIN)/python -m pytest tests/model tests/codec tests/dialects tests/policy --numprocesses 2 --dist loadfile \
	  --no-loadscope-reorder $(ARGS)

# Tests that turn shortcuts on or off themselves do so in `make test`, and are left out here.
test-shortcuts-off: install-dev weights  ## the tests of whatever has a shortcut, with all shortcuts off
	@XENOGLOT_SHORTCUTS=off $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder \
	  --ignore-glob='*/laws/test_cost*.py' --ignore-glob='*/faults/test_security*.py' \
	  --ignore-glob='*/relay/test_push_driver*.py' --ignore=tests/laws/test_shortcuts.py tests/backends/remote tests/codec \
	  $(addprefix --ignore=tests/gateway/,admin auth batches cache config ledger limits media observability process stored telemetry tool_execution) \
	  tests/dialects tests/faults tests/gateway tests/laws tests/matrix tests/oracles tests/test_shortcuts.py \
	  tests/test_translate.py $(ARGS)

drive: install-dev weights $(VENV)/clients.stamp  ## Codex, Claude Code and lm-evaluation-harness at work through a gateway, see drive/README.md
	@$(BIN)/python -m pytest drive $(ARGS)

compliance: install-dev weights $(VENV)/compliance.stamp  ## the published tests of Open Responses, over every dialect and the embedded model
	@$(BIN)/python -m drive.compliance $(ARGS)

$(VENV)/compliance.stamp: drive/compliance/package-lock.json
	@command -v npm >/dev/null || { echo "Bun, on which the tests of Open Responses run, needs npm: drive/README.md"; exit 1; }
	@mkdir -p $(VENV)/compliance
	@cp drive/compliance/package.json drive/compliance/package-lock.json $(VENV)/compliance/
	@cd $(VENV)/compliance && npm ci --no-audit --no-fund --silent
	@touch $@

$(VENV)/clients.stamp: requirements/clients.txt drive/package-lock.json
	@echo "Installing the clients"
	@test -x $(VENV)/clients/bin/python || $(BIN)/python -m venv $(VENV)/clients
	@$(VENV)/clients/bin/python -m pip --disable-pip-version-check --no-input install --quiet \
	  --require-hashes --no-deps --only-binary :all: -r requirements/clients.txt
	@cp drive/package.json drive/package-lock.json $(VENV)/clients/
	@cd $(VENV)/clients && PATH="$$PWD/bin:$$PATH" npm ci --no-audit --no-fund --silent
	@touch $@

check: format lint types language docs-site test  ## format, lint, types, the site, and tests, those of the documentation included

format: install-dev  ## is the code formatted?
	@$(BIN)/ruff format --check

lint: install-dev  ## does the code keep the rules in pyproject.toml?
	@$(BIN)/ruff check

types: install-dev  ## do the types hold?
	@$(BIN)/mypy

language: install-dev  ## is the text in the words of the field? ARGS=FILE looks at one file
	@$(BIN)/python scripts/check_language.py $(ARGS)

docs: install-dev weights  ## the documentation alone: links, and the examples run against a live gateway
	@$(BIN)/python -m pytest tests/docs $(ARGS)

docs-artefacts: install-dev  ## the generated pages, into build/docs (losses, faults), and their summaries in docs
	@$(BIN)/python scripts/docs_artefacts.py

wire-diff: install-dev  ## what the newest types of the SDKs have that no dialect reads, and has no reason in docs/dialects/unread.toml
	@$(BIN)/python scripts/wire_diff.py $(ARGS)

fidelity: install-dev  ## how many cells of the fidelity tables are exact, approximated, dropped; ARGS="--dropped chat messages" lists the features
	@$(BIN)/python scripts/fidelity.py $(ARGS)

docs-contents: install-dev  ## docs/README.md, the list of pages, from docs/navigation.toml
	@$(BIN)/python scripts/docs_navigation.py

docs-images: install-dev $(VENV)/tmux.stamp $(VENV)/chromium.stamp  ## recordings of the terminal programs and screenshots of the console, for the site
	@$(BIN)/python scripts/docs_images.py $(ARGS)

docs-site: install-dev $(VENV)/docs.stamp  ## the documentation as a site, into build/site; warnings and broken links fail
	@$(BIN)/python scripts/docs_site.py $(VENV)/docs/bin/mkdocs

$(VENV)/docs.stamp: requirements/docs.txt | $(BIN)/python
	@echo "Installing what builds the site"
	@test -x $(VENV)/docs/bin/python || $(BIN)/python -m venv $(VENV)/docs
	@$(VENV)/docs/bin/python -m pip --disable-pip-version-check --no-input install --quiet \
	  --require-hashes --no-deps --only-binary :all: -r requirements/docs.txt
	@touch $@

text-models: install-dev  ## the tables of docs/text-models.md anew, from the rows and the vectors
	@$(BIN)/python scripts/text_models.py

providers: install-dev  ## the tables of docs/providers.md anew, from the rows
	@$(BIN)/python scripts/providers.py

dialect-pages: install-dev  ## the tables of docs/dialects/ anew, from the dialects' field tables
	@$(BIN)/python scripts/dialect_pages.py

mutation: install-dev  ## does a test notice each change of a limit or a comparison in the hardened modules?
	@$(BIN)/python scripts/mutate.py $(ARGS)

fuzz: install-dev $(VENV)/fuzz.stamp  ## a minute of fuzzing for each target; ARGS="--seconds 600 sse" for more, or one
	@$(BIN)/python -m tests.fuzz $(ARGS)

soak: install-dev  ## a gateway under mixed faults for five minutes; ARGS="--minutes 60 --seed 7"
	@$(BIN)/python bench/soak.py $(ARGS)

bench: install-dev $(BENCH)  ## the gateway beside nginx: are the goals met? ARGS="--all" measures everything, see bench/README.md
	@$(BIN)/python -m bench.gateway $(ARGS)

bench-gate: install-dev $(BENCH)  ## instructions for each request and token: fails where they are 5 % more than committed
	@$(BIN)/python -m bench.gateway --instructions --gate $(ARGS)

bench-ablation: install-dev  ## what each group of shortcuts is worth; ARGS="--gate" compares with bench/ablation.json
	@$(BIN)/python -m bench.ablation $(ARGS)

bench-peers: install-dev $(BENCH)  ## other gateways in the same table, installed into .venv/peers at locked versions
	@$(BIN)/python -m bench.peers $(ARGS)

$(BENCH): $(VENV)/bench/%: bench/tools/%.c $(wildcard bench/tools/*.h) | $(BIN)/python
	@command -v gcc >/dev/null || { echo "The tools of the benchmark are written in C, and there is no gcc: see bench/README.md"; exit 1; }
	@mkdir -p $(@D)
	@gcc -std=c11 -O2 -Wall -Wextra -Werror -o $@ $<

sbom: $(BIN)/python  ## requirements/sbom.json anew: what `make install` installs, in CycloneDX
	@$(BIN)/python scripts/sbom.py

fmt: install-dev  ## format the code, and mend what can be mended
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

lock: $(VENV)/lock.stamp  ## pyproject.toml -> requirements/*.txt; with ARGS=--upgrade, the newest versions
	@for set in "build:--group build" "run:pyproject.toml --extra all" "lock:--group lock" \
	    "clients:--group clients" "deploy:--group deploy" "docs:--group docs" "fuzz:--group fuzz" \
	    "dev:--group dev -c requirements/run.txt" \
	    "openapi:--group openapi -c requirements/run.txt -c requirements/dev.txt"; do \
	  echo "Locking requirements/$${set%%:*}.txt"; \
	  $(BIN)/uv pip compile --quiet $(ARGS) --universal --python-version 3.11 --no-build --generate-hashes \
	    --system-certs --no-header --no-emit-index-url --no-emit-find-links --output-file requirements/$${set%%:*}.txt $${set#*:} \
	    || exit 1; \
	done
	@$(BIN)/python scripts/sbom.py

clean:  ## remove everything that was made here; the weights stay in your cache
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python: | scripts/venv
	@scripts/venv $(VENV)

$(VENV)/run.stamp: $(LOCKED) pyproject.toml | $(BIN)/python
	@echo "Installing Xenoglot and what it runs on: up to a minute (log: $(VENV)/install.log)"
	@scripts/quiet $(VENV)/install.log $(INSTALL) $(addprefix -r ,$(LOCKED))
	@scripts/quiet $(VENV)/install.log $(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt requirements/openapi.txt $(VENV)/run.stamp
	@echo "Installing what the tests and checks need (log: $(VENV)/install-dev.log)"
	@scripts/quiet $(VENV)/install-dev.log $(INSTALL) -r requirements/dev.txt -r requirements/openapi.txt
	@touch $@

# By hand: the locks' tool does not know the build for the processor alone, and the other brings gigabytes on Linux.
$(VENV)/torch.stamp: requirements/torch.txt $(VENV)/dev.stamp
	@echo "Installing PyTorch for the tests"
	@$(INSTALL) -r requirements/torch.txt
	@$(BIN)/python -c "import torch" || { echo "The tests need PyTorch's build for the processor: CONTRIBUTING.md"; exit 1; }
	@touch $@

# In an environment of their own: linters of containers and clusters, which the gateway does not need.
$(VENV)/deploy.stamp: requirements/deploy.txt | $(BIN)/python
	@echo "Installing the linters of deploy/"
	@test -x $(VENV)/deploy/bin/python || $(BIN)/python -m venv $(VENV)/deploy
	@$(VENV)/deploy/bin/python -m pip --disable-pip-version-check --no-input install --quiet \
	  --require-hashes --no-deps --only-binary :all: -r requirements/deploy.txt
	@touch $@

# The terminal programs are driven in a real terminal.
$(VENV)/tmux.stamp: scripts/tmux | $(BIN)/python
	@scripts/tmux
	@touch $@

# The console is visited in a real browser.
$(VENV)/chromium.stamp: scripts/chromium | $(BIN)/python
	@scripts/chromium
	@touch $@

# Python 3.11 alone: the fuzzer has wheels for few versions.
$(VENV)/fuzz.stamp: requirements/fuzz.txt | $(VENV)/dev.stamp
	@$(INSTALL) -r requirements/fuzz.txt
	@touch $@

$(VENV)/lock.stamp: requirements/lock.txt | $(BIN)/python
	@$(INSTALL) -r requirements/lock.txt
	@touch $@
