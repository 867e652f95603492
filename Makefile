# Everything a developer does. A fresh machine needs Python >= 3.11 with venv and headers, a C++20 compiler
# and make; all else is installed into .venv.
#
#   make demo       see it work                   make test       lint, types and tests: what CI runs
#   make build      rebuild after a C++ edit      make stub       rewrite src/thresher/_core.pyi
#   make format     format all sources            make sanitize   tests under ASan and UBSan
#   make bench      benchmarks of the core        make soak       long property tests
#   make docs       run the examples in the docs  make clean      remove all that was built
#
# Python edits need no rebuild: the install is editable. PYTEST_ARGS is passed on, as in
# `make test PYTEST_ARGS="-k ftrl"`.

PYTHON ?= python3
PYTEST_ARGS ?=
PYTEST_JOBS ?= auto

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
PY := $(BIN)/python
PYTEST := $(PY) -m pytest
PARALLEL := -n $(PYTEST_JOBS) --maxprocesses 4
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
EDITABLE := $(PIP_INSTALL) --no-build-isolation --editable
CPP := $(shell find cpp -type f \( -name '*.hpp' -o -name '*.cpp' \))
NATIVE := CMakeLists.txt $(CPP) src/thresher/_version.py

# cmake and ninja are those of the environment.
export PATH := $(BIN):$(PATH)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo build test lint types format stub docs bench soak sanitize clean

help:
	@sed -n 's/^#   \(make.*\)/\1/p' Makefile

# --- environments: each stamp says that what is written beside it was done -----------------------
# An install's stamp bears the time when it began, so that an edit made meanwhile is not missed.

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

# Build requirements: those of pyproject.toml, and cmake and ninja.
$(VENV)/.tools: pyproject.toml | $(VENV)/.created
	$(PY) $(PIP_INSTALL) cmake ninja $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	@touch $@

# The package with its run-time dependencies. The build folder persists, so that only what changed is compiled.
$(VENV)/.installed: $(VENV)/.tools $(NATIVE)
	@touch $@.began
	$(PY) $(EDITABLE) .
	@mv $@.began $@

# What developers need besides.
$(VENV)/.dev: $(VENV)/.tools | $(VENV)/.installed
	$(PY) $(EDITABLE) '.[dev]'
	@touch $@

build: $(VENV)/.installed

# --- use -----------------------------------------------------------------------------------------

demo: $(VENV)/.installed
	$(BIN)/thresher demo

# --- checks --------------------------------------------------------------------------------------

test: lint types
	$(PYTEST) $(PARALLEL) $(PYTEST_ARGS)

lint: $(VENV)/.dev $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/codespell

types: $(VENV)/.dev $(VENV)/.installed
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

stub: $(VENV)/.dev $(VENV)/.installed
	$(PY) -m nanobind.stubgen -q -m thresher._core -o src/thresher/_core.pyi
	$(BIN)/ruff format --quiet src/thresher/_core.pyi

# pytest's exit code 5: there was nothing to run.
docs: $(VENV)/.dev $(VENV)/.installed
	$(PYTEST) --doctest-glob='*.md' src README.md $(wildcard docs) || [ $$? -eq 5 ]

soak: $(VENV)/.dev $(VENV)/.installed
	HYPOTHESIS_PROFILE=soak $(PYTEST) $(PARALLEL) -m 'soak or hypothesis' $(PYTEST_ARGS) || [ $$? -eq 5 ]

bench: $(VENV)/.dev $(VENV)/.installed
	$(PY) benchmarks/core.py

# --- sanitizers: a second environment, which borrows the first one's packages but has its own core --

SANITIZE := .venv-sanitize
SANITIZE_PY := $(CURDIR)/$(SANITIZE)/bin/python
SITE = import sysconfig; print(sysconfig.get_path("purelib"))

$(SANITIZE)/.created: | $(VENV)/.dev
	$(PY) -m venv $(SANITIZE)
	$(PY) -c '$(SITE)' > "$$($(SANITIZE_PY) -c '$(SITE)')/borrowed.pth"
	@touch $@

$(SANITIZE)/.installed: $(SANITIZE)/.created $(VENV)/.tools $(NATIVE)
	@touch $@.began
	$(SANITIZE_PY) $(EDITABLE) . --no-deps --config-settings=build-dir=build/sanitize \
	  --config-settings=cmake.build-type=Debug --config-settings=cmake.define.THRESHER_SANITIZE=ON
	@mv $@.began $@

sanitize: $(SANITIZE)/.installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	  $(SANITIZE_PY) -m pytest $(PYTEST_ARGS)

clean:
	rm -rf $(VENV) $(SANITIZE) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
