# Everything starts here; `make help` lists it. Two commands are enough to begin with: make demo, make test.
#
# Each recipe asks tools/setup_environment.py for the interpreter to run in. That program uses the environment that is
# active, or makes .venv, and does nothing when there is nothing to do.

PYTHON ?= python3
SUITE ?= all
HW ?= hw1
to = --out "$(or $(OUT),out/$(1))"

# quotes throughout: a checkout may lie under "My Drive/näedle a"
in_env = command -v "$(PYTHON)" >/dev/null || { echo "setup: $(PYTHON) not found; install Python 3.10 or newer" >&2; exit 1; }; \
	python="$$("$(PYTHON)" tools/setup_environment.py)" && "$$python"
course = @$(in_env) -m needle_course

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-pythons lib starter advance status doctor check grade notebook notebooks-test browser-test \
	release bench format lint clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: lib  ## set up, build, train a small model on real digits, draw demo.png, grade the reference
	@$(in_env) apps/demo.py
	$(course) grade hw1 . --out build/demo

test: lib  ## set up, build, run the core tests
	@$(in_env) tools/run_tests.py

test-all: lib  ## the core tests and the long ones: slow tests, sanitizers, mutations
	@$(in_env) tools/run_tests.py --all

test-pythons:  ## build and test with every Python found, on NumPy 1.26 and 2.x
	@$(in_env) tools/test_pythons.py

lib:  ## build the native modules in place; nothing to do takes a moment [CUDA=1] [CUDA_EMU=1] [CUDA_EMU_CHECK=1]
	@$(in_env) tools/build_native.py

starter:  ## a learner's tree for a stage [HW=hw3 OUT=folder FROM=earlier folder]
	$(course) starter "$(HW)" $(call to,$(HW)) $(if $(FROM),--from "$(FROM)")

advance:  ## take a learner's tree to the next stage, or to HW, with their work [DIR=folder HW=hw3]
	$(course) advance $(if $(filter-out file,$(origin HW)),"$(HW)") $(if $(DIR),--dir "$(DIR)")

status:  ## how far a learner's tree is [DIR=folder]
	$(course) status $(if $(DIR),--dir "$(DIR)")

doctor:  ## look for what is missing on this machine, or in a tree [DIR=folder]
	$(course) doctor $(if $(DIR),--dir "$(DIR)")

check:  ## check a question of a learner's tree, or a stage [HW=hw3 Q=matmul H=hints DIR=folder]
	$(course) check "$(HW)" $(if $(H),--hints "$(H)") $(if $(Q),--question "$(Q)") $(if $(DIR),--dir "$(DIR)")

grade:  ## grade a submission, or a folder of them [HW=hw3 DIR=submission OUT=folder]
	$(course) grade "$(HW)" "$(DIR)" $(call to,grades)

notebook:  ## write a stage's notebook [HW=hw3 OUT=folder]
	$(course) notebook "$(HW)" $(call to,notebooks)

notebooks-test: lib  ## run every notebook of the reference top to bottom
	@$(in_env) -m pytest -m "" tests/course/test_notebooks.py

browser-test:  ## a learner's first minutes in a real browser; says what to install for it
	@$(in_env) tools/browser_test.py

release:  ## what a course publishes, without an answer, as folder and zip [OUT=folder]
	$(course) release $(call to,release)

bench: lib  ## benchmarks, with the peers that are installed [SUITE=gemm|sizes|conv|ops|models|overhead|memory|scaling|all]
	@$(in_env) -m benchmarks $(SUITE)

format:  ## rewrite the sources in the house style
	@$(in_env) tools/style.py --fix

lint:  ## say what is not in the house style, and check the types
	@$(in_env) tools/style.py

clean:  ## remove what was built; .venv stays
	@rm -rf build dist demo.png .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@rm -f python/needle/backend_ndarray/*.so python/needle/backend_ndarray/*.dylib
	@find python apps tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
