# Every chore has one door; `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-unit test-native test-integration test-browser fuzz soak lint format bench clean

PYTHON_TARGET ?= python3
TORCH ?= torch==2.13.0

SOURCES := CMakeLists.txt pyproject.toml $(shell find native iprof_py -type f -not -path '*/__pycache__/*' -not -path '*/_native/*')
NATIVE_SOURCES := CMakeLists.txt $(shell find native tests/native -type f)

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

setup: .stamps/tool .stamps/torch ## Install what is missing and build: .venv (the tool), .venv-torch (a program's own)

.stamps/debian: scripts/debian-packages.txt scripts/install-debian-packages
	@mkdir -p .stamps
	@scripts/install-debian-packages scripts/debian-packages.txt
	@touch $@

.venv/bin/python: | .stamps/debian
	@echo "== making .venv from /usr/bin/python3, which has babeltrace2's module"
	/usr/bin/python3 -m venv --system-site-packages .venv

.stamps/tool: $(SOURCES) | .stamps/debian .venv/bin/python
	@echo "== building iprof-py into .venv"
	.venv/bin/pip install --quiet --disable-pip-version-check 'scikit-build-core>=0.10'
	.venv/bin/pip install --quiet --disable-pip-version-check --no-build-isolation --config-settings=editable.rebuild=false --editable '.[dev]'
	@touch $@

.stamps/torch: | .stamps/debian
	@mkdir -p .stamps
	@echo "== making .venv-torch, the interpreter of the traced programs, with $(TORCH)"
	$(PYTHON_TARGET) -m venv .venv-torch
	.venv-torch/bin/pip install --quiet --disable-pip-version-check '$(TORCH)' numpy
	@touch $@

demo: setup ## Train a small network under iprof-py and print its tally
	@echo "== iprof-py -- .venv-torch/bin/python examples/train.py"
	@.venv/bin/iprof-py -- .venv-torch/bin/python examples/train.py

test: test-unit test-native test-integration test-browser ## All tests

test-unit: setup ## Fast tests of pure functions
	@echo "== unit tests"
	@.venv/bin/pytest -q tests/unit

test-native: setup ## Tests of the native analysis, under ASan and UBSan
	@echo "== native tests"
	@cmake -S . -B build/native-tests -G Ninja -DIPROF_TESTS=ON -DIPROF_WERROR=ON -DIPROF_SANITIZE=ON -DCMAKE_BUILD_TYPE=Debug >build/native-tests.log 2>&1 \
	  || { cat build/native-tests.log; exit 1; }
	@cmake --build build/native-tests
	@ctest --test-dir build/native-tests --output-on-failure
	@echo "== reading damaged traces"
	@.venv/bin/python tests/fuzz/fuzz.py 30

fuzz: test-native ## Read 10,000 damaged traces under AddressSanitizer
	.venv/bin/python tests/fuzz/fuzz.py 10000

test-integration: setup ## Tests with LTTng, babeltrace2 and torch
	@echo "== integration tests"
	@.venv/bin/pytest -q tests/integration

test-browser: setup ## Tests with Chromium and speedscope, where those can be installed
	@if scripts/install-browser; then echo "== browser tests"; .venv/bin/pytest -q tests/browser; \
	  else echo "== browser tests left out: no Chromium or no npm here"; fi

soak: setup ## Record a training loop for half an hour; memory must stay flat and nothing be lost
	.venv/bin/python tests/soak/soak.py 30

lint: setup ## Check formatting, types and style
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	clang-format --dry-run --Werror $$(git ls-files 'native/*.[ch]pp' 'native/*.[ch]' 'tests/native/*.[ch]pp' 'tests/integration/programs/*.c' 'tests/integration/programs/*.cpp')

format: setup ## Reformat everything
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix-only .
	clang-format -i $$(git ls-files 'native/*.[ch]pp' 'native/*.[ch]' 'tests/native/*.[ch]pp' 'tests/integration/programs/*.c' 'tests/integration/programs/*.cpp')

bench: setup ## Measure overhead, start-up and analysis speed
	.venv/bin/python benchmarks/run.py

clean: ## Remove what the build made; keeps .venv-torch
	rm -rf build .venv .stamps/tool .stamps/debian
