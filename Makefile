# Everything runs in .venv, which `make setup` makes. Needs: Python >= 3.10. Java is found or
# installed by pip (jobs/java.py).
#
#   make setup PYTHON=python3.12                        with another Python
#   make test VENV=.venv-3.5 PYSPARK='pyspark==3.5.*'   with another PySpark, beside .venv
#   make test ARGS='-k java -x'                         more for pytest

PYTHON ?= python3
VENV ?= .venv
PYSPARK ?= pyspark
ARGS ?=

BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := build/demo
PAPER := build/paper
PAPER_DATA ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo paper paper-quick test matrix soak fuzz mutants check docs bench-quick bench zip clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## make .venv with everything for demo, test and check

# The stamp is written last, so a broken set-up is done again.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "make: PYTHON=$(PYTHON) must be Python >= 3.10; got $$($(PYTHON) --version 2>&1 | head -1). Name another one: make setup PYTHON=python3.12" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[jobs,test,dev]' '$(PYSPARK)'
	@touch $(READY)

demo: $(READY)  ## cluster handwritten digits on Spark and write a report
	$(BIN)/python jobs/demo_data.py $(DEMO)/digits.npz
	$(BIN)/python jobs/fit.py --input $(DEMO)/digits.npz --k 10 --local-steps 5 --max-iter 60 \
	  --n-init 10 --partitions 8 --seed 1 --output $(DEMO)/run --overwrite
	@echo "Report: $(CURDIR)/$(DEMO)/run/report.html"

# Data that is not here: make paper PAPER_DATA='--mnist m.npz --cifar10 c.npz --posture Postures.csv'
paper: $(READY)  ## the paper's figures, 20 trials, into docs/paper/
	$(BIN)/python jobs/reproduce_paper.py --figure all --trials 20 --output $(PAPER) $(PAPER_DATA)
	mkdir -p docs/paper
	cd $(PAPER) && cp figure-*.png misclustering.csv claims.csv figure-seeding-restarts.csv \
	  figure-beyond-placements.csv $(CURDIR)/docs/paper/
	@echo "Report: $(CURDIR)/$(PAPER)/report.md"

paper-quick: $(READY)  ## the same, small: to see that it runs
	$(BIN)/python jobs/reproduce_paper.py --figure all --quick --output $(PAPER)-quick $(PAPER_DATA)

# Two processes, a file of tests in one of them: tests mostly wait, for Java and for Spark.
test: $(READY)  ## run the test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

matrix: $(READY)  ## the tests with every PySpark, Pythons and libraries old and new: hours
	$(BIN)/nox $(ARGS)

soak: $(READY)  ## 200 faults in fits on a real cluster, about 40 minutes; needs Linux
	$(BIN)/python -m tests.soak.run $(ARGS)

fuzz: $(READY)  ## 2,000 random tables and parameters against a slow reference
	FUZZ_CASES=2000 FUZZ_SEED=$${FUZZ_SEED:-$$(date +%s)} $(BIN)/python -m pytest -s tests/fuzz $(ARGS)

# One thread: a process forked after OpenMP started threads waits for them for ever.
mutants: $(READY)  ## break the kernel and the driver's decisions, line by line: do tests notice?
	OMP_NUM_THREADS=1 $(BIN)/python -m mutmut run $(ARGS)
	$(BIN)/python -m tests.mutants

check: $(READY)  ## lint, format, types, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Not with --quiet: warnings that are not shown are not counted as errors.
docs: $(READY)  ## the documentation as a site in build/site; a warning is an error
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Site: $(CURDIR)/build/site/index.html"

BENCH := $(BIN)/python -m benchmarks
BENCH_RESULTS := benchmarks/results
BENCH_DATA ?= ../shared/data
# Rows, features, clusters, noise: the last is a mixture as blurred as word vectors.
BENCH_SIZES ?= 400000,64,64,1 2000000,64,100,1 1000000,128,1000,1 200000,784,10,1 \
  10000000,16,20,1 400000,50,100,3
# Features and clusters of 250,000 rows.
BENCH_MANY ?= 2,1000 2,4000 2,10000 16,1000 16,4000 16,10000 128,1000 128,4000
# Rows, features, clusters, partitions (0: as Spark reads the files), local steps.
BENCH_MEMORY ?= 25000,8,8,8,5 200000,32,32,8,5 800000,32,32,8,5 800000,32,32,2,5 \
  800000,64,32,2,5 100000,256,512,8,5 100000,256,2048,8,5 800000,16,20,0,5 3200000,16,20,0,5 \
  12500000,16,20,0,5 50000000,16,20,0,5

bench-quick: $(READY)  ## ratios against MLlib and scikit-learn, under 5 minutes; kept in the page
	$(BENCH).compare --n 200000 --d 64 --k 64 --peers mllib-block,sklearn --repeats 2 \
	  --json $(BENCH_RESULTS)/compare.json
	$(BENCH).page

bench: $(READY)  ## every figure of docs/BENCHMARKS.md; takes hours
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[benchmarks]'
	for size in $(BENCH_SIZES); do \
	  set -- $$(echo $$size | tr , ' '); \
	  $(BENCH).compare --n $$1 --d $$2 --k $$3 --noise $$4 \
	    --json $(BENCH_RESULTS)/compare.json || exit 1; done
	for size in 400000,64,64 2000000,64,100; do \
	  set -- $$(echo $$size | tr , ' '); \
	  $(BENCH).compare --n $$1 --d $$2 --k $$3 --warm-up --peers mllib-block \
	    --json $(BENCH_RESULTS)/compare.json || exit 1; done
	$(BENCH).cached --json $(BENCH_RESULTS)/cached.json
	$(BENCH).cached --connect --json $(BENCH_RESULTS)/cached.json
	$(BENCH).transform --json $(BENCH_RESULTS)/transform.json
	$(BENCH).seeding --data $(BENCH_DATA) --json $(BENCH_RESULTS)/seeding.json
	for size in $(BENCH_MANY); do \
	  set -- $$(echo $$size | tr , ' '); \
	  $(BENCH).many --d $$1 --k $$2 --json $(BENCH_RESULTS)/many.json || exit 1; done
	$(BENCH).growth --json $(BENCH_RESULTS)/growth.json
	for point in $(BENCH_MEMORY); do \
	  $(BENCH).growth --memory --base $$(echo $$point | tr , ' ') \
	    --json $(BENCH_RESULTS)/growth.json || exit 1; done
	for point in 20000,1000,1000,8,5 4000,10000,1000,8,5; do \
	  $(BIN)/python jobs/local_cluster.py --memory 3g -- $(BENCH).growth --memory \
	    --driver-memory 4g --base $$(echo $$point | tr , ' ') \
	    --json $(BENCH_RESULTS)/growth.json || exit 1; done
	$(BENCH).page

zip:  ## build dist/localkmeans_spark.zip for spark-submit --py-files
	$(PYTHON) jobs/build_zip.py dist/localkmeans_spark.zip

clean:  ## remove what was built, .venv included
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
