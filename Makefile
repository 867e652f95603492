# All developer commands. You need Python >= 3.11 with venv and headers, a C++20 compiler and make;
# everything else is installed into .venv.
#
#   make demo       a demonstration               make test       lint, types and tests, as in CI
#   make build      rebuild after a C++ change    make stub       rewrite src/thresher/_core.pyi
#   make format     format all sources            make sanitize   tests under ASan and UBSan
#   make bench      the table of speeds           make soak       all that takes a night, with a report
#   make docs       the site, in docs/_build/html  make fuzz       fuzz the readers, a minute each
#   make clean      remove all build results      make experiments  docs/results.md from the papers
#   make race       threads under the thread sanitizer
#   make coverage   lines and branches of C++ and Python that the tests run
#   make properties long property tests
#   make faults     let every call of the system fail in turn, and cut the power; see tests/faults
#   make quick      lint, types and the most important tests, in under a minute
#   make bench-full     the table for large data; writes docs/speed.md
#   make bench-compare REV=...  our calls of two versions in turn; names what got slower
#   make bench-history  measures this version, and draws all that were measured
#   make bench-peers    installs the libraries that the table compares with
#   make api        record the public interface, after a change that is wanted
#   make wheel      build the sdist and wheels of the last commit into dist/
#   make wheel-check    build them twice, compare all bytes, and try them
#   make workflows  check the files of .github
#
# `make fuzz` needs clang with libFuzzer (Debian: apt install clang libclang-rt-dev). Options:
# FUZZ_SECONDS (for each target) and FUZZ_TARGETS.
#
# The install is editable, so Python changes need no rebuild. PYTEST_ARGS is passed to pytest, as in
# `make test PYTEST_ARGS="-k ftrl"`; BENCH_ARGS is passed on by all `make bench...`, as in
# `make bench BENCH_ARGS="--only fit"`.

PYTHON ?= python3
PYTEST_ARGS ?=
PYTEST_JOBS ?= $(shell expr $$(nproc) + 1)   # many tests wait: for a command, a cluster, a browser

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
PY := $(BIN)/python
PYTEST := $(PY) -m pytest
# All tests with Ray (tests/**/test_*_ray.py) run in one process; see tests/conftest.py.
PARALLEL := -n $(PYTEST_JOBS) --maxprocesses 4 --dist loadgroup
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
EDITABLE := $(PIP_INSTALL) --no-build-isolation --editable
CPP := $(shell find cpp -type f \( -name '*.hpp' -o -name '*.cpp' \))
MODULES := $(sort $(shell find src -name '*.py'))
NATIVE := CMakeLists.txt $(CPP) src/thresher/_version.py

# Use cmake and ninja of the environment.
export PATH := $(BIN):$(PATH)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: FORCE help demo build test quick lint types format stub docs golden bench bench-full \
  bench-compare bench-history bench-peers experiments soak properties sanitize race race-tests \
  coverage faults fuzz api wheel wheel-check workflows clean

help:
	@sed -n 's/^#   \(make.*\)/\1/p' Makefile

# --- environments: each stamp file records that a step is done ------------------------------------
# The stamp of an install has the time at which the install began, so later edits trigger a new one.

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "error: $(PYTHON) not found: install Python 3.11 or newer (Debian: python3)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "error: Python's venv module is missing (Debian: apt install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || \
	  { echo "error: Python.h is missing (Debian: apt install python3-dev)" >&2; exit 1; }
	@command -v $(CXX) >/dev/null || \
	  { echo "error: no C++ compiler '$(CXX)' (Debian: apt install g++)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Build requirements of pyproject.toml, and cmake and ninja.
$(VENV)/.tools: pyproject.toml | $(VENV)/.created
	$(PY) $(PIP_INSTALL) cmake ninja $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@touch $@

# An editable install only knows the modules that existed then; new modules need a new install.
$(VENV)/.modules: FORCE | $(VENV)/.created
	@echo $(MODULES) | cmp -s - $@ || echo $(MODULES) > $@

FORCE:

# The package with its run-time dependencies. The build folder is kept, so builds are incremental.
$(VENV)/.installed: $(VENV)/.tools $(VENV)/.modules $(NATIVE)
	@touch $@.began
	@test -e $@ || echo "building: 2 to 10 minutes"
	$(PY) $(EDITABLE) .
	@mv $@.began $@

# Additional packages for developers.
$(VENV)/.dev: $(VENV)/.tools | $(VENV)/.installed
	$(PY) $(EDITABLE) '.[dev]'
	@touch $@

build: $(VENV)/.installed

# --- use -----------------------------------------------------------------------------------------

demo: $(VENV)/.installed
	$(BIN)/thresher demo --html build/demo.html

# --- checks --------------------------------------------------------------------------------------

test: lint types
	$(PYTEST) $(PARALLEL) $(PYTEST_ARGS)

# Exactness against the oracles, estimators, model files, readers, and some of the command line.
QUICK := tests/core tests/oracles tests/io tests/data/test_sources.py tests/model/test_files.py \
  $(addprefix tests/training/test_,golden.py lane_outputs.py lane_team.py outputs.py outputs_streams.py) \
  $(addprefix tests/estimators/test_,estimators.py ecosystem.py training.py) \
  tests/search/test_progressive.py tests/distributed/test_engine.py $(addprefix tests/cli/test_,cli.py train.py) \
  $(foreach case,ftrl several cache,'tests/training/test_resume.py::test_killed_and_resumed[$(case)]')

quick: lint types
	$(PYTEST) $(PARALLEL) $(QUICK) $(PYTEST_ARGS)

lint: $(VENV)/.dev $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(PY) cpp/lint.py
	$(BIN)/codespell
	$(BIN)/lint-imports --no-cache --no-logo

types: $(VENV)/.dev $(VENV)/.installed
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

stub: $(VENV)/.dev $(VENV)/.installed
	$(PY) -m nanobind.stubgen -q -m thresher._core -o src/thresher/_core.pyi
	$(BIN)/ruff format --quiet src/thresher/_core.pyi

# Hashes of all models (tests/golden.json); a commit that changes one says why.
golden: $(VENV)/.dev $(VENV)/.installed
	PYTHONPATH=tests $(PY) tests/training/test_golden.py --write

# The public interface, in tests/public_api.txt; docs/stability.md says what is public.
api: $(VENV)/.dev $(VENV)/.installed
	PYTHONPATH=tests $(PY) -m support.public_api

# The site: runs the examples of all pages, builds, then checks links, and pages in a browser.
docs: $(VENV)/.docs $(VENV)/.installed
	$(PYTEST) -n 2 src README.md docs --ignore=docs/checks $(PYTEST_ARGS)
	$(PY) -m sphinx -q -W --keep-going -j 2 -b html docs docs/_build/html
	$(PYTEST) -n 2 docs/checks $(PYTEST_ARGS)

$(VENV)/.docs: pyproject.toml $(VENV)/.dev
	$(PY) $(EDITABLE) '.[docs]'
	@touch $@

# Everything that takes a night, with counts in build/reliability; writes docs/reliability.md. It
# goes on where an earlier run ended. SOAK_ARGS: steps and options of tests/reliability/soak.py.
soak: $(VENV)/.dev $(VENV)/.installed
	$(PY) tests/reliability/soak.py $(SOAK_ARGS)

# Long property tests, and tests with the mark `soak`.
properties: $(VENV)/.dev $(VENV)/.installed
	HYPOTHESIS_PROFILE=soak $(PYTEST) $(PARALLEL) -m 'soak or hypothesis' $(PYTEST_ARGS) || [ $$? -eq 5 ]

# benchmarks/README.md describes these.
SPEED := PYTHONPATH=$(CURDIR)/benchmarks$${PYTHONPATH:+:$$PYTHONPATH} $(PY) -m
BENCH_ARGS ?=

bench: $(VENV)/.dev $(VENV)/.installed
	$(SPEED) speed $(BENCH_ARGS)

bench-full: $(VENV)/.dev $(VENV)/.installed
	$(SPEED) speed --full --page $(BENCH_ARGS)

bench-compare: $(VENV)/.dev $(VENV)/.installed
	@[ -n "$(REV)" ] || { echo "error: name the other version: make bench-compare REV=HEAD~10" >&2; exit 1; }
	$(SPEED) speed.compare '$(REV)' $(BENCH_ARGS)

bench-history: $(VENV)/.dev $(VENV)/.installed
	$(SPEED) speed.history $(BENCH_ARGS)

bench-peers: $(VENV)/.dev
	$(SPEED) speed.peers

# EXPERIMENTS selects experiments. EXPERIMENT_ARGS is passed on, as in
# `make experiments EXPERIMENT_ARGS=--missing`.
experiments: $(VENV)/.dev $(VENV)/.installed
	$(PY) -m experiments $(EXPERIMENTS) $(EXPERIMENT_ARGS)

# --- checked cores: environments with the packages of the first, and a core of their own ----------
# sanitize: the address and undefined-behaviour sanitizers; race: the thread sanitizer; coverage:
# counts of lines and branches.

CHECKED := sanitize race coverage
CORE_sanitize := cmake.build-type=Debug cmake.define.THRESHER_SANITIZE=address,undefined
CORE_race := cmake.build-type=Debug cmake.define.THRESHER_SANITIZE=thread
CORE_coverage := cmake.build-type=Release cmake.define.THRESHER_COVERAGE=ON
SITE = import sysconfig; print(sysconfig.get_path("purelib"))

.PRECIOUS: .venv-%/.created .venv-%/.installed

.venv-%/.created: | $(VENV)/.dev
	$(PY) -m venv .venv-$*
	$(PY) -c '$(SITE)' > "$$(.venv-$*/bin/python -c '$(SITE)')/borrowed.pth"
	@touch $@

.venv-%/.installed: .venv-%/.created $(VENV)/.tools $(NATIVE)
	@touch $@.began
	$(CURDIR)/.venv-$*/bin/python $(EDITABLE) . --no-deps \
	  $(addprefix --config-settings=,build-dir=build/$* $(CORE_$*))
	@mv $@.began $@

# Libraries that a core with sanitizers needs in the process before Python starts.
preload = LD_PRELOAD="$$($(CXX) -print-file-name=$(1)) $$($(CXX) -print-file-name=libstdc++.so)"
UNDER_SANITIZE = $(call preload,libasan.so) ASAN_OPTIONS=detect_leaks=0 \
  UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc $(CURDIR)/.venv-sanitize/bin/python

sanitize: .venv-sanitize/.installed
	$(UNDER_SANITIZE) -m pytest $(PYTEST_ARGS) || [ $$? -eq 5 ]   # 5: there are no tests

# Readers, lanes, teams, stabilized paths, predictions, the server, and a script of threads. The
# reports are in files, because pytest captures what a process prints. A forked process may start
# threads.
RACE_TESTS := $(addprefix tests/io/test_,corpus.py reader.py cache.py svmlight.py vw.py vw_names.py \
    first_names.py) \
  $(addprefix tests/data/test_,buckets.py spans.py) \
  $(addprefix tests/training/test_,lane_outputs.py lane_team.py threads_of_outputs.py) \
  $(addprefix tests/core/test_,stabilized.py threads_and_states.py hashed_or_dense.py scorer.py \
    lanes_errors.py discovery.py) \
  $(addprefix tests/estimators/test_,shared_by_threads.py one_row.py) \
  $(addprefix tests/search/test_,progressive.py label_sets.py) \
  $(addprefix tests/serving/test_,learn.py learn_checkpoints.py) \
  tests/reliability/test_reliability.py::test_threads_do_not_change_results
RACES := $(CURDIR)/build/race/report
UNDER_RACE = $(call preload,libtsan.so) PYTHONMALLOC=malloc \
  TSAN_OPTIONS="log_path=$(RACES) exitcode=0 die_after_fork=0 suppressions=$(CURDIR)/tests/reliability/race.supp" \
  $(CURDIR)/.venv-race/bin/python

race: .venv-race/.installed
	@rm -f $(RACES).*
	$(UNDER_RACE) -m pytest $(or $(PYTEST_ARGS),$(RACE_TESTS)) || [ $$? -eq 5 ]
	@! cat $(RACES).* 2>/dev/null || { echo "error: the thread sanitizer reports races" >&2; exit 1; }

race-tests:
	@echo $(RACE_TESTS)

# Lines and branches that the tests run: of C++ by gcov, of Python by coverage.py. COVERAGE_TESTS
# selects tests.
coverage: .venv-coverage/.installed $(VENV)/.coverage
	.venv-coverage/bin/python tests/reliability/coverage_of_tests.py $(COVERAGE_TESTS)

$(VENV)/.coverage: | $(VENV)/.dev
	$(PY) $(PIP_INSTALL) coverage
	@touch $@

# --- faults: a preloaded library lets calls of the system and allocations fail --------------------
# FAULT_ARGS is passed on, as in `make faults FAULT_ARGS="--only train --verbose"`.

FAULT_ARGS ?=

faults: $(VENV)/.dev $(VENV)/.installed
	PYTHONPATH=tests CXX='$(CXX)' $(PY) -m faults $(FAULT_ARGS)

# --- fuzzing: libFuzzer generates files, starting from those in tests/corpus ---------------------
# New inputs go to build/fuzz/corpus. Inputs that break a reader go to build/fuzz/broken.

FUZZ := build/fuzz
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= $(FUZZ_NATIVE) $(FUZZ_PYTHON)
FUZZ_NATIVE := svmlight vw cache
FUZZ_PYTHON := model checkpoint unpacking
FUZZ_CXX ?= clang++

$(FUZZ)/.built: $(VENV)/.tools CMakeLists.txt cpp/fuzz/CMakeLists.txt $(CPP)
	@command -v $(FUZZ_CXX) >/dev/null || \
	  { echo "error: make fuzz needs clang ($(FUZZ_CXX) not found; Debian: apt install clang)" >&2; exit 1; }
	@mkdir -p $(FUZZ)
	@echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' | \
	  $(FUZZ_CXX) -x c++ -fsanitize=fuzzer,address,undefined -o $(FUZZ)/probe - || \
	  { echo "error: $(FUZZ_CXX) has no libFuzzer (Debian: apt install libclang-rt-dev)" >&2; exit 1; }
	@rm -f $(FUZZ)/probe
	cmake -S . -B $(FUZZ) -G Ninja -DTHRESHER_FUZZ=ON -DCMAKE_CXX_COMPILER=$(FUZZ_CXX)
	cmake --build $(FUZZ)
	@touch $@

# atheris has its own libFuzzer. It cannot be installed everywhere, so it is not in the extra `dev`.
$(VENV)/.atheris: | $(VENV)/.dev
	$(PY) $(PIP_INSTALL) atheris || \
	  { echo "error: atheris cannot be installed here; without it: make fuzz FUZZ_TARGETS='$(FUZZ_NATIVE)'" >&2; exit 1; }
	@touch $@

fuzz: $(addprefix fuzz-,$(FUZZ_TARGETS))
.PHONY: $(addprefix fuzz-,$(FUZZ_NATIVE) $(FUZZ_PYTHON))

$(addprefix fuzz-,$(FUZZ_NATIVE)): fuzz-%: $(FUZZ)/.built
	$(call run_fuzzer,$(FUZZ)/bin/$*,$*,-max_len=2048 -entropic=0 -use_counters=0 $(addprefix -dict=,$(wildcard cpp/fuzz/$*.dict)))

$(addprefix fuzz-,$(FUZZ_PYTHON)): fuzz-%: $(VENV)/.atheris $(VENV)/.installed
	$(call run_fuzzer,$(PY) tests/fuzzing/run.py $*,$*,-max_len=65536)

# $(call run_fuzzer,command,target,options). The log shows why an input failed. The inputs of the
# corpus, which it reads first, do not count.
NEW_INPUTS := $$2 == "INITED" {read = substr($$1, 2)} /^stat::number_of_exec/ {print "  inputs tried: " $$2 - read}
define run_fuzzer
@mkdir -p $(FUZZ)/corpus/$(2) $(FUZZ)/broken tests/corpus/$(2)
@echo "fuzzing $(2) for $(FUZZ_SECONDS) s"
@$(1) $(3) -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=2560 -print_final_stats=1 \
  -artifact_prefix=$(FUZZ)/broken/$(2)- $(FUZZ)/corpus/$(2) tests/corpus/$(2) >$(FUZZ)/$(2).log 2>&1; \
  code=$$?; awk '$(NEW_INPUTS)' $(FUZZ)/$(2).log; [ $$code -eq 0 ] || \
  { tail -n 40 $(FUZZ)/$(2).log >&2; echo "error: $(2) is broken by the input named above" >&2; exit 1; }
endef

# Reduces tests/corpus and the inputs found to a small set with the same branch coverage. atheris
# always includes the counts of branches.
fuzz-merge-%: $(FUZZ)/.built $(VENV)/.atheris
	rm -rf $(FUZZ)/merged/$* && mkdir -p $(FUZZ)/merged/$*
	$(if $(filter $*,$(FUZZ_NATIVE)),$(FUZZ)/bin/$* -use_counters=0 -use_cmp=0,$(PY) tests/fuzzing/run.py $*) \
	  -set_cover_merge=1 $(FUZZ)/merged/$* tests/corpus/$* $(FUZZ)/corpus/$* 2>$(FUZZ)/$*.log

# --- release: CONTRIBUTING.md describes the steps ------------------------------------------------
# Wheels are built from the sdist, so it is complete, each for one Python of WHEEL_PYTHONS. From
# 3.12 on, a wheel is for all newer versions, too. auditwheel decides the tag by the symbols of
# glibc that the core uses. The dates in all files are that of the last commit.

WHEEL_PYTHONS ?= $(PYTHON)
DIST ?= dist
wheel: export SOURCE_DATE_EPOCH := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),315532800)

$(VENV)/.release: $(VENV)/.tools | $(VENV)/.installed
	$(PY) $(EDITABLE) '.[release]'
	@touch $@

wheel: $(VENV)/.release
	@[ -z "$$(git status --porcelain 2>/dev/null)" ] || \
	  echo "warning: there are changes that are not committed; they will be in the files" >&2
	rm -rf '$(DIST)' && mkdir -p '$(DIST)'
	$(PY) -m build --sdist --outdir '$(DIST)' .
	for python in $(WHEEL_PYTHONS); do $$python -m pip wheel --quiet --disable-pip-version-check \
	  --no-cache-dir --no-deps --wheel-dir '$(DIST)/raw' '$(DIST)'/thresher-*.tar.gz || exit 1; done
	$(if $(filter Linux,$(shell uname)),$(BIN)/auditwheel repair --wheel-dir,mv -t) '$(DIST)' '$(DIST)'/raw/*.whl
	rm -r '$(DIST)/raw'
	$(BIN)/twine check --strict '$(DIST)'/*
	@ls -l '$(DIST)'

wheel-check: $(VENV)/.dev $(VENV)/.release
	$(PYTEST) -m soak tests/release $(PYTEST_ARGS)

YAML := {extends: default, rules: {document-start: disable, line-length: {max: 100}, truthy: disable}}
workflows: $(VENV)/.release
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/yamllint --strict --config-data '$(YAML)' .github
	$(BIN)/zizmor --offline --quiet .github

clean:
	rm -rf $(VENV) $(addprefix .venv-,$(CHECKED)) build dist docs/_build docs/gallery docs/*/generated .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
