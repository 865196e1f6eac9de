# The two commands that do all the set-up: `make demo` and `make test`. The second time both skip it.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ROUND ?= instances/openb/openb-default.json.gz
WORKERS ?= 2
QUICK := tests/check tests/problem tests/terms tests/model tests/feasibility \
	tests/test_arguments.py tests/test_linear.py tests/test_readable.py \
	tests/documentation/test_docstrings.py \
	tests/documents/test_documents.py tests/heuristics/test_job_orders.py \
	tests/solving/test_changes.py tests/solving/test_wrong_solvers.py tests/whole/test_imports.py \
	--ignore=tests/check/test_mutated_plans.py
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test types lint pages quick cover night sanitized wheels site lock clean

demo: $(STAMP)
	@mkdir -p out
	$(BIN)/placeopt solve $(ROUND) --time-limit 10 --out out/demo-plan.json.gz
	$(BIN)/placeopt check $(ROUND) out/demo-plan.json.gz
	$(BIN)/placeopt show out/demo-plan.json.gz --instance $(ROUND)

test: $(STAMP)
	@$(MAKE) --no-print-directory --output-sync=target --jobs=$(WORKERS) types lint pages
	$(BIN)/pytest -n $(WORKERS) --dist worksteal --durations=15

types: $(STAMP)
	$(BIN)/mypy

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/vulture

pages: $(STAMP)
	$(BIN)/mkdocs build --quiet

# Less than a minute on two cores: what most changes break first.
quick: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/pytest -n $(WORKERS) $(QUICK)

cover: $(STAMP)
	$(BIN)/pytest -n $(WORKERS) --cov=placeopt --cov-report=term:skip-covered --cov-report=html:out/coverage

# Some hours: tests marked night, each property on new examples, each campaign of kills, signals and storms, whose results go to
# bench/results/campaigns.jsonl. NAMES="referee bombs" runs these alone, MINUTES=5 is the most for each.
night: $(STAMP)
	$(if $(NAMES),,$(BIN)/pytest -n $(WORKERS) -m night)
	$(if $(NAMES),,$(MAKE) --no-print-directory sanitized wheels)
	PYTHONPATH=tests $(BIN)/python -m campaigns $(or $(NAMES),all) --workers $(WORKERS) $(if $(MINUTES),--minutes $(MINUTES))

# What is compiled, with a check of every address and of arithmetic that C leaves undefined: the first mistake ends the tests.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
sanitized: $(STAMP)
	CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-build-isolation --no-deps --upgrade --target out/sanitized .
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
		PYTHONPATH=out/sanitized $(BIN)/pytest -n $(WORKERS) tests/search tests/formulations/test_compiled_packing.py

# Wheels for both processors, whatever this one is: zig has a C compiler and the C library of each.
WHEELS := out/wheels
wheels: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target $(WHEELS)/tools ziglang wheel
	for processor in x86_64 aarch64; do \
		zig="$(abspath $(BIN))/python -m ziglang cc -target $$processor-linux-gnu.2.17"; \
		CC="$$zig" LDSHARED="$$zig -shared" PYTHONPATH=$(abspath $(WHEELS))/tools \
		SETUPTOOLS_EXT_SUFFIX=.$$($(BIN)/python -c 'import sys; print(sys.implementation.cache_tag)')-$$processor-linux-gnu.so \
		$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir $(WHEELS)/$$processor . && \
		PYTHONPATH=$(WHEELS)/tools $(BIN)/python -m wheel tags --remove --platform-tag manylinux_2_17_$$processor $(WHEELS)/$$processor/*.whl \
		|| exit 1; \
	done

# The documentation as a site: open site/index.html, no network needed.
site: $(STAMP)
	$(BIN)/mkdocs build

# Everything comes from the lock, hashes checked; it is complete, so nothing is resolved (pip 23 takes the newest release of
# "coverage[toml]" past the pinned "coverage" and then refuses it). placeopt itself is linked in, not copied, so edits need no reinstall,
# but for what is compiled: the local search, and the packing of nodes.
$(STAMP): requirements.lock pyproject.toml hatch_build.py $(wildcard src/placeopt/search/*.py src/placeopt/search/*.pxd src/placeopt/formulations/fillings/packing.p*)
	@$(PYTHON) -c 'import sys; sys.exit("placeopt needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

# Needs pip-tools. What is locked stays as it is; UPGRADE=--upgrade takes the newest of all. No index, no host: whoever installs uses the registry that their pip is configured for.
lock:
	cp requirements.lock $(VENV)/requirements.new
	pip-compile --quiet $(UPGRADE) --generate-hashes --strip-extras --extra cli --extra dev --extra docs --all-build-deps --allow-unsafe \
		--no-annotate --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
		--output-file $(VENV)/requirements.new pyproject.toml
	{ sed -n '/^#/!q;p' requirements.lock; grep -v '^#' $(VENV)/requirements.new; } > $(VENV)/requirements.lock
	mv $(VENV)/requirements.lock requirements.lock

clean:
	rm -rf $(VENV) out
