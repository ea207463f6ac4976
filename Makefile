# make bench: sets everything up and compares with NumPy and oneMKL.   make test: sets everything up and runs all tests.
# Needs g++, make and python3 (3.10 or later); everything else is fetched from PyPI into .venv.

PYTHON ?= python3
BUILD := build
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# A benchmark beside NumPy must not run under settings made for old OpenBLAS builds. For these commands alone.
UNHAMPERED := env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE
SOURCES := $(shell git ls-files include src kernels python cmake tuned CMakeLists.txt pyproject.toml 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help bench bench-cpu test test-cpp test-python lint format asan fuzz tuned intel-check build clean

help:
	@echo "make bench        compare with NumPy and oneMKL at 512 to 4096: table, $(BUILD)/bench.json, $(BUILD)/bench.png"
	@echo "make bench-cpu    the same over bench/shapes.toml, float32 and float64"
	@echo "make test         all tests, C++ and Python, and an installation into a fresh environment"
	@echo "make lint         formatting, static checks, types"
	@echo "make asan         C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make fuzz         kernels against each other on random shapes, for FUZZ_SECONDS (default 60)"
	@echo "make tuned        measure the records that are shipped for this machine's device: a quarter of an hour, quiet"
	@echo "make intel-check  compile every shipped kernel for Intel GPUs and look for spills (needs ocloc)"
	@echo "make format       rewrite sources in the project's format"

# ---- environment ---------------------------------------------------------------------------------------------------------------------

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found: install Python 3.10 or later"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is wanted, $(PYTHON) is `$(PYTHON) -V`"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: Debian and Ubuntu keep that in a package of its own:"; \
	  echo "    sudo apt-get install python3-venv python3-dev"; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' || { \
	  echo "the headers of $(PYTHON) are missing (Python.h), which a compiled module needs. Debian and Ubuntu:"; \
	  echo "    sudo apt-get install python3-dev"; exit 1; }
	@command -v $(firstword $(CXX)) >/dev/null || { echo "no C++ compiler ($(CXX)) was found: install g++ 11 or later"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The wheel is built as pip does for a user: in isolation, its tools from PyPI.
$(BUILD)/wheel.stamp: $(BIN)/python $(SOURCES)
	@echo "building the package: some minutes the first time"
	rm -rf $(BUILD)/dist
	$(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --wheel-dir $(BUILD)/dist .
	@touch $@

$(VENV)/installed: $(BUILD)/wheel.stamp
	wheel=`ls $(BUILD)/dist/*.whl` && \
	$(BIN)/python -m pip install --disable-pip-version-check --quiet "$$wheel[bench,onemkl,test]" && \
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --force-reinstall "$$wheel"
	@touch $@

# The tools of developers, for builds outside pip.
$(VENV)/tools: $(VENV)/installed
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --upgrade-strategy only-if-needed \
	  cmake ninja nanobind nlohmann-json scikit-build-core mypy ruff clang-format build
	@touch $@

# ---- the main jobs -------------------------------------------------------------------------------------------------------------------

bench: $(VENV)/installed
	$(UNHAMPERED) $(BIN)/sycl-mat bench --sizes 512,1024,2048,4096 --json $(BUILD)/bench.json --plot $(BUILD)/bench.png

bench-cpu: $(VENV)/installed
	$(UNHAMPERED) $(BIN)/sycl-mat bench --shapes bench/shapes.toml --dtype float32,float64 --device cpu --no-blog \
	  --json $(BUILD)/bench-cpu.json --plot $(BUILD)/bench-cpu.png

$(BUILD)/release/build.ninja: $(VENV)/tools
	PATH="$(abspath $(BIN)):$$PATH" cmake --preset release --log-level=NOTICE -DPython_EXECUTABLE=$(abspath $(BIN))/python -DSYCL_MAT_PYTHON=OFF
	@touch $@

build: $(BUILD)/release/build.ninja
	PATH="$(abspath $(BIN)):$$PATH" cmake --build --preset release --parallel $(JOBS)

# C++ first: it is the longer way to an answer, and closer to the cause.
test:
	$(MAKE) test-cpp
	$(MAKE) test-python

test-cpp: build
	PATH="$(abspath $(BIN)):$$PATH" ctest --preset release --no-tests=error --parallel 2

test-python: $(VENV)/tools
	SYCL_MAT_WHEEL=`ls $(BUILD)/dist/*.whl` $(BIN)/python -m pytest $(PYTEST_ARGS)

# ---- checks --------------------------------------------------------------------------------------------------------------------------

CPP_FILES = $(shell git ls-files '*.cpp' '*.hpp')

lint: $(VENV)/tools
	$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/tools
	$(BIN)/clang-format -i $(CPP_FILES)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

asan: $(VENV)/tools
	PATH="$(abspath $(BIN)):$$PATH" cmake --preset asan --log-level=NOTICE -DPython_EXECUTABLE=$(abspath $(BIN))/python
	PATH="$(abspath $(BIN)):$$PATH" cmake --build --preset asan --parallel $(JOBS)
	PATH="$(abspath $(BIN)):$$PATH" ctest --preset asan --no-tests=error

FUZZ_SECONDS ?= 60
fuzz: $(VENV)/installed
	$(BIN)/python tests/fuzz/fuzz.py --seconds $(FUZZ_SECONDS)

tuned: $(VENV)/installed
	$(UNHAMPERED) $(BIN)/python tools/tune_shipped.py

intel-check: build
	$(BIN)/python tools/intel_check.py --build $(BUILD)/release

clean:
	rm -rf $(BUILD)
