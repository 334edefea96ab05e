# Everything starts here; `make help` lists it. Two commands are enough to begin with: make demo, make test.
#
# Each recipe asks tools/setup_environment.py for the interpreter to run in. That program uses the environment that is
# active, or makes .venv, and does nothing when there is nothing to do.

PYTHON ?= python3
SUITE ?= all

# quotes throughout: a checkout may lie under "My Drive/näedle a"
in_env = command -v "$(PYTHON)" >/dev/null || { echo "setup: $(PYTHON) not found; install Python 3.10 or newer" >&2; exit 1; }; \
	python="$$("$(PYTHON)" tools/setup_environment.py)" && "$$python"

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-pythons lib bench format lint clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: lib  ## set up, build, train a small model on real digits, draw demo.png
	@$(in_env) apps/demo.py

test: lib  ## set up, build, run the core tests
	@$(in_env) tools/run_tests.py

test-all: lib  ## the core tests and the long ones: slow tests, sanitizers, mutations
	@$(in_env) tools/run_tests.py --all

test-pythons:  ## build and test with every Python found, on NumPy 1.26 and 2.x
	@$(in_env) tools/test_pythons.py

lib:  ## build the native modules in place; nothing to do takes a moment
	@$(in_env) tools/build_native.py

bench: lib  ## benchmarks, with the peers that are installed [SUITE=name]
	@$(in_env) -m benchmarks "$(SUITE)"

format:  ## rewrite the sources in the house style
	@$(in_env) tools/style.py --fix

lint:  ## say what is not in the house style, and check the types
	@$(in_env) tools/style.py

clean:  ## remove what was built; .venv stays
	@rm -rf build dist demo.png .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@rm -f python/needle/backend_ndarray/*.so
	@find python apps tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
