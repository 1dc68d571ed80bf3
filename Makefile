# sampan: `make digits` trains the first model, `make test` runs the tests; both make what they need in .venv first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
TEST_FLAGS ?= -n 2
BENCH_FLAGS ?=

bin := $(VENV)/bin
sources := $(shell find csrc sampan -name '*.py' -o -name '*.cpp' -o -name '*.h')

.DEFAULT_GOAL := help
.PHONY: help venv dev digits test check check-format check-lint check-types check-layers bench clean

help:  ## these lines
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 18

venv: $(VENV)/.installed  ## an environment in .venv with sampan built into it

$(VENV)/.installed: pyproject.toml CMakeLists.txt $(sources)
	test -x $(bin)/python || "$(PYTHON)" -m venv $(VENV)
	$(bin)/python -m pip install --quiet --disable-pip-version-check ".[test,examples]"
	touch $@

dev: venv  ## build the extension module into the source tree; then `.venv/bin/python -m pytest` runs against the sources
	$(bin)/python -m pip install --quiet --disable-pip-version-check scikit-build-core nanobind cmake ninja onednn-devel-cpu-gomp
	tools/dev_build.sh $(bin)/python

digits: venv  ## the first model: train, save, reload, predict, draw
	$(bin)/sampan example digits

# Two test processes share the cores: threads that wait must sleep, not spin. From inside tests/ the programs that tests start import the
# installed package, and not this folder's sources.
test: venv  ## the tests
	cd tests && OMP_WAIT_POLICY=passive $(abspath $(bin))/pytest $(TEST_FLAGS)

check: check-format check-lint check-types check-layers  ## format, lint, types, layers and sizes

check-format: venv
	$(bin)/ruff format --check --output-format concise .

check-lint: venv
	$(bin)/ruff check --output-format concise .

check-types: venv
	$(bin)/mypy

check-layers: venv
	$(bin)/python tools/check_layers.py

bench: venv  ## speed side by side with the peers (SAMPAN_BENCH_TORCH=python SAMPAN_BENCH_PADDLE=python)
	$(bin)/python benchmarks/harness.py $(BENCH_FLAGS)

clean:  ## remove the environment and everything built
	rm -rf .venv build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
