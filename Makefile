# The two commands of the README: `make verify` and `make test`. Both do their own set-up.

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto
OUT ?= vectors
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# imports, references, mirrors, and the command
VERSION_TESTS ?= tests/test_names.py tests/test_scan.py tests/test_cauchy.py tests/test_tour.py \
  tests/command/test_help.py tests/command/test_locale.py tests/command/test_plot.py
# where several processes share the cores, the threads of OpenBLAS wait for each other

.PHONY: help verify test test-versions lint soak resume tables vectors wheel clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "refssm needs Python 3.11 or newer; say which with make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv

# uv installs in a fraction of pip's time; where uv or its index cannot be had, pip installs
define install
	@{ $(PIP) uv && $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[$(1)]'; } \
	  || { echo "uv cannot install here; pip does, and takes longer"; $(PIP) --editable '.[$(1)]'; }
	@touch $@
endef

.venv/installed: pyproject.toml | .venv/bin/python  # what the README's tour needs
	$(call install,report)

.venv/testing: pyproject.toml | .venv/bin/python
	$(call install,test)

.venv/developing: pyproject.toml | .venv/bin/python  # pyright reads the tests' imports, too
	$(call install,dev)

.venv/packaging: pyproject.toml | .venv/bin/python
	$(call install,package)

verify: .venv/installed  ## judge real code: SciPy, our Numba mirrors, a wrong scan
	@echo "--- our Numba mirrors, results and last states: every check passes (exit code 0)"
	OPENBLAS_NUM_THREADS=1 $(BIN)/refssm verify --subject jit --profile quick --check value --check state
	@echo "--- SciPy: right but for NaN and infinity, told in docs/findings.md (exit code 1)"
	OPENBLAS_NUM_THREADS=1 $(BIN)/refssm verify --subject scipy --check value --check nan || test $$? -eq 1
	@echo "--- a scan that loses its carry at chunk boundaries: the judge says so (exit code 1)"
	OPENBLAS_NUM_THREADS=1 $(BIN)/refssm verify docs/examples/chunked_scan_wrong.py; test $$? -eq 1

test: .venv/testing  ## run all tests
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup --quiet

test-versions: .venv/testing  ## a few tests on Python 3.11, 3.12, 3.13, and with the oldest libraries
	.ci/test-versions $(VERSION_TESTS)

lint: .venv/developing  ## ruff and pyright, as CI runs them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

soak: .venv/testing  ## 1000 seeds x 5 cases of every honest implementation; resumable; ONLY=dplr,nplr
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m refssm.conformance.selftest.soak --seeds 1000 --cases 5 --only "$(ONLY)"

vectors: .venv/testing  ## golden vectors of every operator that has them, in OUT=vectors
	OPENBLAS_NUM_THREADS=1 $(BIN)/refssm vectors write "$(OUT)"
	OPENBLAS_NUM_THREADS=1 $(BIN)/refssm vectors lint "$(OUT)"

tables: .venv/installed  ## call, layout and traits in docs/operators, from the declarations
	$(BIN)/python -m refssm.command.tables

resume: .venv/testing  ## kill a run of 10 000 cases time and again, and let it go on
	OPENBLAS_NUM_THREADS=1 REFSSM_RESUMED_CASES=10000 $(BIN)/python -m pytest --quiet tests/conformance/spreading/test_resume.py -k killed

wheel: .venv/packaging  ## build wheel and sdist into dist, check them, run the wheel outside the clone
	.ci/wheel

clean:  ## remove the environment and everything generated
	rm -rf .venv .refssm .pytest_cache .ruff_cache dist build
