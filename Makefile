# The two commands of the README: `make verify` and `make test`. Both do their own set-up.

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= auto
comma := ,
OUT ?= vectors
# a machine that sets this would compile all of refssm again in each child process
export PYTHONDONTWRITEBYTECODE :=
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# imports, references, mirrors, and the command
VERSION_TESTS ?= tests/test_names.py tests/test_scan.py tests/test_cauchy.py tests/test_tour.py \
  tests/command/test_help.py tests/command/test_locale.py tests/command/test_plot.py
# honest programs and the judge's self-tests are not in the wheel
WITH_TESTS := PYTHONPATH=tests
# where several processes share the cores, the threads of OpenBLAS wait for each other
ONE_THREAD := OPENBLAS_NUM_THREADS=1

.PHONY: help verify test test-kernels test-kernels-all test-gpu test-versions test-turn test-all subjects lint soak resume tables \
  pictures benchmarks benchmarks-gpu experiments experiments-quick vectors wheel docs docs-browser clean

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

.venv/benchmarking: pyproject.toml | .venv/bin/python
	$(call install,report$(comma)subjects)

.venv/kernels: pyproject.toml | .venv/bin/python
	$(call install,test$(comma)kernels)

.venv/gpu: pyproject.toml | .venv/bin/python
	$(call install,test$(comma)gpu)

.venv/documenting: pyproject.toml | .venv/bin/python
	$(call install,docs)

.venv/packaging: pyproject.toml | .venv/bin/python
	$(call install,package)

MIRRORS := scan::linear_scan cauchy::cauchy_kernel selective_scan::selective_scan
RECURRENCES := gated_delta_rule_chunked kimi_delta_rule_chunked mamba2_scan ssd_chunked gated_delta_step \
  kimi_delta_step mamba2_step
OTHERS := rwkv6_chunked delta_dplr_chunked mlstm_chunked mamba3_siso rg_lru min_gru linoss_im linoss_imex \
  delta_dplr_step
SCIPY := refssm.subjects.scipy::fftconvolve
# one screen: a test counts its lines
verify: .venv/installed  ## judge real code: three mirrors of ours, SciPy, a wrong scan
	@echo "--- three mirrors and SciPy's FFT convolution: right (exit code 0)"
	@$(ONE_THREAD) $(BIN)/refssm verify $(addprefix refssm.jit.,$(MIRRORS)) $(SCIPY) --profile quick --check value
	@echo "--- a scan that loses its carry every 64 steps: where and why (exit code 1)"
	@$(ONE_THREAD) $(BIN)/refssm verify docs/examples/chunked_scan_wrong.py --dtype float32 --check value; test $$? -eq 1
	@echo "--- next, in this shell: . .venv/bin/activate; then: refssm verify YOUR_FILE.py"

PYTEST = $(ONE_THREAD) $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup

test: .venv/testing  ## the short run: every fact, of long lists one twelfth (REFSSM_ROTATION=0 to 35)
	$(BIN)/python -m refssm.jit
	$(PYTEST) -m short

test-turn: .venv/testing  ## one part in 36 of what `make test` leaves out
	$(PYTEST) -m "turn and not short"

test-all: .venv/testing  ## every test
	$(BIN)/python -m refssm.jit
	$(PYTEST)

test-kernels: .venv/kernels  ## CUDA kernels without a GPU: the host build, sanitizers, NVRTC; 6 minutes
	$(WITH_TESTS) $(BIN)/python -m gpu.gate
	$(PYTEST) tests/gpu -m "not long"

test-kernels-all: .venv/kernels  ## the same in every type, with the default profile, three orders of threads in turn
	$(WITH_TESTS) $(BIN)/python -m gpu.gate
	$(PYTEST) tests/gpu

test-gpu: .venv/gpu  ## all that needs a card: tests, compute-sanitizer, the judge, the benchmark; 8 minutes
	PYTHON=$(BIN)/python .ci/gpu

benchmarks-gpu: .venv/gpu  ## time the mirrors on the GPU for docs/benchmarks.md, on a machine with a card
	REFSSM_GPU= $(BIN)/refssm bench --device gpu --sizes large --vjp --peers --json docs/benchmarks_gpu.json
	$(WITH_TESTS) $(BIN)/python -m docs.build.benchmarks

test-versions: .venv/testing  ## a few tests on Python 3.11, 3.12, 3.13, and with the oldest libraries
	.ci/test-versions $(VERSION_TESTS)

subjects: .venv/testing  ## which clones of public repositories are in FOLDER, and at which commit each was judged
	$(WITH_TESTS) $(BIN)/python -m selftest.subjects "$(FOLDER)"

lint: .venv/developing  ## ruff and pyright, as CI runs them, and the lines of each room beside their budget
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/python docs/build/budget.py

soak: .venv/testing  ## 1000 seeds x 5 cases of every honest implementation; resumable; ONLY=dplr,nplr
	$(ONE_THREAD) $(WITH_TESTS) $(BIN)/python -m selftest.soak --seeds 1000 --cases 5 --only "$(ONLY)"

vectors: .venv/testing  ## golden vectors of every operator that has them, in OUT=vectors
	$(ONE_THREAD) $(BIN)/refssm vectors write "$(OUT)"
	$(ONE_THREAD) $(BIN)/refssm vectors lint "$(OUT)"

tables: .venv/installed  ## generated tables in docs: operators, checks, contracts, the soak
	$(WITH_TESTS) $(BIN)/python -m docs.build.tables

pictures: .venv/developing  ## the picture in docs/judge.md and those in docs/gallery
	$(WITH_TESTS) $(BIN)/python -m docs.build.pictures
	$(WITH_TESTS) $(BIN)/python -m docs.build.stages
	$(WITH_TESTS) $(BIN)/python -m docs.build.learning
	$(BIN)/python -m docs.build.gallery
	$(BIN)/python -m docs.build.experiments

benchmarks: .venv/benchmarking  ## time all operators of docs/benchmarks.md on an idle machine, with JAX and PyTorch
	$(BIN)/refssm bench --sizes paper --peers --vjp --growth --json docs/benchmarks.json --plot docs/pictures/benchmarks.svg
	$(BIN)/refssm bench $(RECURRENCES) --sizes paper --peers --vjp --json docs/benchmarks_recurrences.json
	$(BIN)/refssm bench $(OTHERS) --sizes paper --peers --vjp --json docs/benchmarks_recurrences_2.json
	$(BIN)/refssm bench --layers --peers --json docs/training_steps.json
	$(WITH_TESTS) $(BIN)/python -m docs.build.benchmarks

experiments-quick: .venv/testing  ## train every layer on digits with three seeds, into docs/training.md: 12 minutes
	$(ONE_THREAD) $(WITH_TESTS) $(BIN)/python -m docs.build.curves

experiments: .venv/testing  ## what the papers say, into docs/experiments.md: all, or ONLY="recall cost"; what was trained is kept in runs/
	$(ONE_THREAD) $(WITH_TESTS) $(BIN)/python -m docs.build.claims $(ONLY)

resume: .venv/testing  ## kill a run of 10 000 cases time and again, and let it go on
	$(ONE_THREAD) REFSSM_RESUMED_CASES=10000 $(BIN)/python -m pytest --quiet tests/conformance/spreading/test_resume.py -k killed

SITE ?= build/site
docs: .venv/documenting  ## the site, in build/site/html: warnings are errors, every link is followed; a minute
	$(BIN)/python -m docs.site.stage $(SITE)/source
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --jobs 2 $(SITE)/source $(SITE)/html
	$(BIN)/python -m docs.site.links $(SITE)/html

docs-browser: docs  ## every page of it in a headless browser at 1200 and at 400 pixels; two minutes
	$(BIN)/python -m docs.site.browse $(SITE)/html

wheel: .venv/packaging  ## build wheel and sdist into dist, check their files, run the wheel outside the clone
	.ci/wheel

clean:  ## remove the environment and everything generated
	rm -rf .venv .refssm .pytest_cache .ruff_cache dist build
