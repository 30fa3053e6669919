# `make demo` and `make test` need make and a Python >= 3.12, nothing else.
# Another interpreter: make test PYTHON=/path/to/python3.12
# More for pytest:     make test PYTEST_ARGS="-n 0 -x tests/methods"

# The first that really runs and is new enough: a version manager's shim may exist and fail.
PYTHON = $(shell for candidate in python3 python3.13 python3.12; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1 \
	&& { echo "$$candidate"; break; }; done)

VENV = .venv
PIP_INSTALL = $(VENV)/bin/python -m pip install $(PIP_FLAGS) --quiet --disable-pip-version-check -c constraints.txt
# One worker per core, and one thread per worker: nested thread pools only get in each other's way.
PYTEST = OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n auto --dist worksteal
# Workers have a core each, and threads within them would wait for each other.
SIMULATE = OMP_NUM_THREADS=1 PYTHON_CPU_COUNT=1 $(VENV)/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help install dev demo test fuzz edge-cases docs pictures calibrate lint format types warmup clean

help:
	@echo "make demo       rank the bundled example: leaderboard, InferenceData file, figures"
	@echo "make test       run the tests and the examples in the docstrings"
	@echo "make fuzz       call everything on random data, ten thousand times; SEED=7 for other data"
	@echo "make edge-cases write tests/edge_cases.csv anew, after a deliberate change or for a new method"
	@echo "make docs       build the documentation, its notebooks executed, into docs/_build/html"
	@echo "make pictures   draw the pictures of the README and the landing page into docs/static"
	@echo "make lint       check style and formatting (make format repairs both)"
	@echo "make types      check types"
	@echo "make calibrate  measure coverage and calibration by simulation: a night, resumable"
	@echo "make warmup     compile every model once, so that later first calls are fast"
	@echo "make dev        install the development tools as well"
	@echo "make clean      remove the environment and everything that was built"

$(VENV)/installed: pyproject.toml constraints.txt
	@python="$(PYTHON)"; test -n "$$python" || { \
		echo "bayesrank needs Python >= 3.12, and none of python3, python3.13, python3.12 is one." >&2; \
		echo "Install one, or name it: make $(or $(MAKECMDGOALS),demo) PYTHON=/path/to/python3.12" >&2; \
		exit 1; }; \
	echo "Installing bayesrank into $(VENV) (about a minute, once)"; \
	"$$python" -m venv $(VENV)
	@$(PIP_INSTALL) -e '.[test]'
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@$(PIP_INSTALL) -e '.[dev]'
	@touch $@

$(VENV)/installed-docs: $(VENV)/installed
	@$(PIP_INSTALL) -e '.[docs]'
	@touch $@

install: $(VENV)/installed

dev: $(VENV)/installed-dev

demo: install
	@$(VENV)/bin/python -m bayesrank demo

test: install
	@$(PYTEST) $(PYTEST_ARGS)

fuzz: install
	@BAYESRANK_FUZZ_SEED=$(or $(SEED),0) $(PYTEST) -m slow tests/inference/test_random_calls.py $(PYTEST_ARGS)

edge-cases: install
	@OMP_NUM_THREADS=1 $(VENV)/bin/python tests/test_edge_cases.py

# Without executing the notebooks: BAYESRANK_DOCS_NOTEBOOKS=off make docs
docs: $(VENV)/installed-docs
	@OMP_NUM_THREADS=1 $(VENV)/bin/python -m sphinx -b html -W --keep-going -q docs docs/_build/html

pictures: install
	@MPLBACKEND=Agg $(VENV)/bin/python docs/pictures.py

# Part of it:  make calibrate CALIBRATE_ARGS="--simulations 200 --methods voting avg"
# Exit code 5 is pytest's "no test was selected".
calibrate: install
	@$(PYTEST) -m slow $(PYTEST_ARGS) || { code=$$?; test $$code -eq 5 || exit $$code; }
	@$(SIMULATE) calibration.designs $(DESIGNS_ARGS)
	@$(SIMULATE) calibration.coverage $(CALIBRATE_ARGS)
	@$(SIMULATE) calibration.sbc $(SBC_ARGS)
	@$(SIMULATE) calibration.evaluation_intervals
	@$(SIMULATE) calibration.run_effects
	@$(SIMULATE) calibration.measured
	@$(SIMULATE) calibration.pass_family

lint: dev
	@$(VENV)/bin/python -m ruff check
	@$(VENV)/bin/python -m ruff format --check

format: dev
	@$(VENV)/bin/python -m ruff check --fix
	@$(VENV)/bin/python -m ruff format

types: dev
	@$(VENV)/bin/python -m pyright

warmup: install
	@$(VENV)/bin/python -m bayesrank warmup

clean:
	rm -rf $(VENV) build dist docs/_build docs/api docs/gallery docs/method *.egg-info bayesrank-demo .pytest_cache .ruff_cache .hypothesis
