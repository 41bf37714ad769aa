# The project's commands. Each makes .venv first, from the hashed lock; nothing else need be typed or installed.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The docs tool has an environment of its own, which only `make docs` makes.
BOOK_VENV := .venv-docs
BOOK_READY := $(BOOK_VENV)/.ready
BOOK := build/book
# So has the cluster: Ray is large, and what is checked and tested elsewhere never sees it.
RAY_VENV := .venv-ray
RAY_READY := $(RAY_VENV)/.ready
# So has the fuzzer, which only `make test-faults` makes; where it cannot be installed that part is skipped and said.
FUZZ_VENV := .venv-fuzz
FUZZ_READY := $(FUZZ_VENV)/.ready
# Newest first; each is tried by running it, since a launcher may stand for an interpreter that is not there.
PYTHONS := python3.13 python3.12 python3.11 python3 python
WORKERS ?= 2
# Of the tries of the campaigns; 1 is all.
SHARE ?= 1
STUDY ?= results/study
IN_STUDY = $(BIN)/consilience --project $(STUDY)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env demo all study paper test test-slow test-faults test-browser test-ray check docs bench bench-peers lock

help:
	@echo "make demo       the whole thing offline, on a synthetic town"
	@echo "make all        tests, then a simulated study from raw sales to the paper, in $(STUDY)"
	@echo "make test       the fast tests and every documented example"
	@echo "make test-slow  kill campaign, coverage studies, whole data sets"
	@echo "make test-faults  the campaigns of faults and of hostile input; rewrites docs/campaigns"
	@echo "make test-browser  a real browser walks through the viewer (installs Chromium from Debian's packages)"
	@echo "make test-ray   runs on a local Ray cluster of two nodes"
	@echo "make check      formatting, lint, types, direction of imports"
	@echo "make docs       the book, in build/book/site"
	@echo "make bench      all benchmarks; rewrites benchmarks/RESULTS.md"
	@echo "make bench-peers  the same work by other packages, each in its own environment; rewrites benchmarks/PEERS.md"
	@echo "make lock       writes the locks anew from pyproject.toml (needs uv)"

env: $(READY)

demo: $(READY)
	$(BIN)/consilience demo

# Tests, then every step of a study in order: each goes on where it stopped.
all: test
	$(MAKE) paper

study: $(READY)
	mkdir -p $(STUDY)
	$(IN_STUDY) data synth --output $(STUDY)/data/raw/town.csv
	$(IN_STUDY) data build --adapter synthetic --input $(STUDY)/data/raw/town.csv
	$(IN_STUDY) data splits
	$(IN_STUDY) data subsample
	$(IN_STUDY) baselines predict --arm A_hedonic --arm A2_adjusted_comps --arm B_hierarchical --arm C_boosting --arm D_avm
	$(IN_STUDY) grid examples/study.yaml
	$(IN_STUDY) evaluate --include-simulated
	$(IN_STUDY) report --include-simulated --title "A simulated study"

# The source always; the PDF where a compiler of LaTeX is.
paper: study
	@cd $(STUDY)/results/report && \
	if command -v tectonic >/dev/null; then tectonic paper.tex; \
	elif command -v latexmk >/dev/null; then latexmk -pdf -interaction=nonstopmode paper.tex; \
	elif command -v pdflatex >/dev/null; then pdflatex -interaction=nonstopmode paper.tex && pdflatex -interaction=nonstopmode paper.tex; \
	else echo "no compiler of LaTeX here: the source is $(STUDY)/results/report/paper.tex"; fi

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --doctest-modules src tests book

test-slow: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m slow tests
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile tests/properties

test-faults: $(READY)
	-$(MAKE) $(FUZZ_READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist load -m "faults or not (faults or slow or browser)" --tables docs/campaigns \
	  --share $(SHARE) tests/faults

# The one suite that needs a program of the system: Chromium, from Debian's packages, where it is not there yet.
test-browser: $(VENV)/.browser
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || { \
	  echo "make test-browser needs chromium: install Debian's package of that name." >&2; exit 1; }
	$(BIN)/python -m pytest -m browser tests/browser

test-ray: $(RAY_READY)
	$(RAY_VENV)/bin/python -m pytest -m ray tests/cluster

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# The pages are laid out by the package's own environment, which knows what there is, and built by the tool's.
# Not --quiet: the tool then counts no warning, and strict is not strict.
docs: $(READY) $(BOOK_READY)
	$(BIN)/python -m book $(BOOK)
	$(BOOK_VENV)/bin/mkdocs build --strict --config-file book/mkdocs.yml
	@echo "The book: $(BOOK)/site/index.html"

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# Each peer is installed under build/peers, from the pins in benchmarks/peers/requirements: 3 GB with all of them.
bench-peers: $(READY)
	$(BIN)/python benchmarks/run_peers.py

# The pins stay as they are unless pyproject.toml asks for others; UPGRADE=--upgrade moves all of them.
lock:
	@set -e; uv=$$(command -v uv || command -v $(BIN)/uv) || { echo "make lock needs uv: pip install uv" >&2; exit 1; }; \
	$$uv pip compile --universal --python-version 3.11 --extra dev --extra report --generate-hashes \
	  --custom-compile-command "make lock" $(UPGRADE) --quiet pyproject.toml -o requirements.lock; \
	$$uv pip compile --universal --python-version 3.11 --group browser --constraint requirements.lock --generate-hashes \
	  --custom-compile-command "make lock" $(UPGRADE) --quiet -o requirements-browser.lock; \
	$$uv pip compile --universal --python-version 3.11 --group docs --generate-hashes \
	  --custom-compile-command "make lock" $(UPGRADE) --quiet -o requirements-docs.lock; \
	$$uv pip compile --universal --python-version 3.11 --group ray --constraint requirements.lock --generate-hashes \
	  --custom-compile-command "make lock" $(UPGRADE) --quiet -o requirements-ray.lock; \
	$$uv pip compile --universal --python-version 3.11 --group fuzz --constraint requirements.lock --generate-hashes \
	  --custom-compile-command "make lock" $(UPGRADE) --quiet -o requirements-fuzz.lock

$(READY): requirements.lock pyproject.toml
	@set -eu; \
	python=; \
	for name in $(PYTHONS); do \
	  if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$name; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "Consilience needs Python 3.11 or newer and found none of: $(PYTHONS). Install one and run make again." >&2; \
	  exit 1; \
	fi; \
	fresh=; \
	$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || fresh=1; \
	if command -v uv >/dev/null; then \
	  echo "Making $(VENV) with uv"; \
	  if [ -n "$$fresh" ]; then uv venv --quiet --clear --python "$$python" $(VENV); fi; \
	  install="uv pip install --quiet --python $(BIN)/python"; \
	else \
	  echo "Making $(VENV) with venv and pip"; \
	  if [ -n "$$fresh" ]; then \
	    "$$python" -m venv --clear $(VENV) || { \
	      echo "$$python cannot make environments: install its venv package (Debian: python3-venv) or uv." >&2; exit 1; }; \
	  fi; \
	  $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; \
	  install="$(BIN)/python -m pip install --quiet --disable-pip-version-check"; \
	fi; \
	$$install --require-hashes -r requirements.lock; \
	$$install --no-deps --no-build-isolation -e .; \
	touch $@

$(VENV)/.browser: $(READY) requirements-browser.lock
	@set -eu; \
	if command -v uv >/dev/null; then install="uv pip install --quiet --python $(BIN)/python"; \
	else install="$(BIN)/python -m pip install --quiet --disable-pip-version-check"; fi; \
	$$install --require-hashes -r requirements-browser.lock; \
	touch $@

$(BOOK_READY): requirements-docs.lock | $(READY)
	@set -eu; \
	if command -v uv >/dev/null; then \
	  echo "Making $(BOOK_VENV) with uv"; \
	  uv venv --quiet --clear --python $(BIN)/python $(BOOK_VENV); \
	  install="uv pip install --quiet --python $(BOOK_VENV)/bin/python"; \
	else \
	  echo "Making $(BOOK_VENV) with venv and pip"; \
	  $(BIN)/python -m venv --clear $(BOOK_VENV); \
	  install="$(BOOK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check"; \
	fi; \
	$$install --require-hashes -r requirements-docs.lock; \
	touch $@

$(RAY_READY): requirements.lock requirements-ray.lock | $(READY)
	@set -eu; \
	if command -v uv >/dev/null; then \
	  echo "Making $(RAY_VENV) with uv"; \
	  uv venv --quiet --clear --python $(BIN)/python $(RAY_VENV); \
	  install="uv pip install --quiet --python $(RAY_VENV)/bin/python"; \
	else \
	  echo "Making $(RAY_VENV) with venv and pip"; \
	  $(BIN)/python -m venv --clear $(RAY_VENV); \
	  install="$(RAY_VENV)/bin/python -m pip install --quiet --disable-pip-version-check"; \
	fi; \
	$$install --require-hashes -r requirements.lock; \
	$$install --require-hashes -r requirements-ray.lock; \
$(FUZZ_READY): requirements-fuzz.lock requirements.lock | $(READY)
	@set -eu; \
	if command -v uv >/dev/null; then \
	  echo "Making $(FUZZ_VENV) with uv"; \
	  uv venv --quiet --clear --python $(BIN)/python $(FUZZ_VENV); \
	  install="uv pip install --quiet --python $(FUZZ_VENV)/bin/python"; \
	else \
	  echo "Making $(FUZZ_VENV) with venv and pip"; \
	  $(BIN)/python -m venv --clear $(FUZZ_VENV); \
	  install="$(FUZZ_VENV)/bin/python -m pip install --quiet --disable-pip-version-check"; \
	fi; \
	$$install --require-hashes -r requirements.lock -r requirements-fuzz.lock; \
	$$install --no-deps --no-build-isolation -e .; \
	touch $@
