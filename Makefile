# The front door. Every target makes the environment it needs; `make help` lists them.
#
# Settings, given behind the target:
#   PROFILE=quick        smaller studies, for a look (default: paper, the paper's sizes)
#   SOLUTIONS=no         a book without the solutions of its exercises
#   CE_DATA=path         Consumer Expenditure file for the application (default: the Diary on board)
#   NB=name              the notebook that `make run` runs
#   ARGS='-k cli'        passed on by `make test`, `make run` and `make audit`
#   THOROUGH=yes         `make test` with its long reruns, and with what breaks laws to see it noticed
#   SHOTS=folder         pictures of every page, left by `make browser`
#   PYTHON=/path/python  the interpreter to build the environment on

VENV = .venv
PROFILE = paper
SOLUTIONS =
CE_DATA =
NB =
ARGS =
THOROUGH =
SHOTS =
PYTHON =

RUN = $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help book run classroom test browser lint benchmark env lock audit clean _inputs

help: ## list the targets
	@awk -F ': .*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' Makefile

book: _inputs env ## execute the notebooks and build the book: PROFILE=quick, CE_DATA=path
	@"$(RUN)" -m ppm_book.tools.made_from "$(PROFILE)" "$(CE_DATA)" "$(SOLUTIONS)" || \
	    "$(RUN)" -m ppm_book.tools.studio book --profile "$(PROFILE)" --ce-data "$(CE_DATA)" \
	    $(if $(SOLUTIONS),--no-solutions)

# a slip in a file's name, or a `no` that is none, is told before anything long begins
_inputs:
	@case "$(SOLUTIONS)" in '' | no) ;; *) \
	    echo "SOLUTIONS=$(SOLUTIONS): write SOLUTIONS=no, or leave it away" >&2; exit 2 ;; esac
	@case "$(CE_DATA)" in '' | '~'*) ;; *) [ -e "$(CE_DATA)" ] || \
	    { echo "CE_DATA=$(CE_DATA): there is no such file" >&2; exit 2; } ;; esac

run: env ## run one notebook: NB=poisson_contraction ARGS='-p replicates=50'; `make run` lists them
	@"$(RUN)" -m ppm_book.tools.studio $(if $(NB),run $(NB) --profile "$(PROFILE)" $(ARGS),notebooks)

classroom: env ## make what a class gets, its solutions, and a course for nbgrader: _build/classroom
	@"$(RUN)" -m ppm_book.tools.studio classroom

# on every core a process of one thread that takes tests over when its own are done, and one more,
# because some wait; four at the most, because one that has compiled many models holds more than a
# gigabyte. MALLOC_…: Linux keeps the memory of an array for the next one, which is faster
test: env ## run the tests, the notebooks and a build of the book among them: THOROUGH=yes for all
	@THOROUGH="$(THOROUGH)" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	    MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=268435456 "$(RUN)" -m pytest \
	    --numprocesses=logical --maxprocesses=4 --dist=worksteal $(ARGS)

# what `make test` does with a small book, on the one that was built
browser: env ## look at every page of the built book in a headless Chromium: SHOTS=folder
	@PPM_BOOK=_build/html PPM_SHOTS="$(SHOTS)" "$(RUN)" -m pytest \
		tests/browser $(ARGS)

lint: env ## check the style of the code and of the notebooks
	@"$(RUN)" -m ruff check .
	@"$(RUN)" -m ruff format --check .

benchmark: env ## time the mixture's sampler and the mechanism beside what else one would use
	@"$(RUN)" benchmarks/mixture.py
	@"$(RUN)" benchmarks/mechanism.py
	@echo "Others: benchmarks/streaming.py; marginals.py, with an environment of its own"

env: ## make the environment in .venv from requirements.lock: PYTHON=/path/python
	@sh scripts/environment.sh "$(VENV)" "$(PYTHON)"

lock: env ## write requirements.lock from the ranges in pyproject.toml
	@sh scripts/lock.sh "$(VENV)"

# --strict: a package of which the service knows nothing is not taken for a safe one
audit: env ## ask for known vulnerabilities of the locked packages: ARGS='-s osv'
	@[ -x _build/audit/bin/pip-audit ] || { "$(RUN)" -m venv _build/audit && \
	    _build/audit/bin/pip install --quiet 'pip-audit>=2.9,<3'; }
	@_build/audit/bin/pip-audit --strict --disable-pip -r requirements.lock $(ARGS)

clean: ## remove everything generated, the environment and your runs excepted
	rm -rf _build build .pytest_cache .ruff_cache .hypothesis *.egg-info
	find ppm book tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
