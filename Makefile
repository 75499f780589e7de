# Everything starts here: `make help`. Needs make, Python 3.11 or newer with venv, and a package registry.
# All else goes into .venv and, for the control plane and the tools of the tests, into the user's cache folder.

VENV   := .venv
BIN    := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY  := $(VENV)/.ready
CODE    = $(wildcard jobset_gate jobset_gate_demo webhook controllers tests bench e2e requirements charts docs release)

# `make PYTHON=/path/to/python3.12 setup` picks the interpreter; otherwise the first that works.
PYTHON ?=
PYTEST_ARGS ?=
# For example `make bench BENCH_ARGS="--scale 0.1 --only decode"`.
BENCH_ARGS ?=
# For example `make bench-release RELEASE_ARGS="--pods 20 --runs 3"`.
RELEASE_ARGS ?=
# `make image IMAGE=name:tag BASE=python:3.13-slim`; MACHINES="x86_64 aarch64" collects the wheels of more than one.
IMAGE ?= jobset-gate:dev
BASE ?= $(shell sed -n 's/^ARG BASE=//p' Dockerfile)
MACHINES ?=
# `make e2e KUBECONFIG=file` runs on that cluster, KEEP=1 leaves what was made standing. A KUBECONFIG that is merely in
# the environment is no such wish.
KEEP ?=
E2E_ARGS ?=
GIVEN   = $(if $(filter command,$(firstword $(origin KUBECONFIG))),KUBECONFIG="$(KUBECONFIG)",env -u KUBECONFIG)
# `make try` leaves a cluster with everything in it standing, `make try DELETE=1` takes it away.
DELETE ?=
TRY_ARGS ?=
# Tests wait more than they compute: more workers than processors. They share one control plane; see tests/plane/lanes.py.
WORKERS ?= 4
LOCK    = $(BIN)/pip-compile --quiet --allow-unsafe --generate-hashes --strip-extras --no-header --no-emit-options \
          --no-emit-index-url --no-emit-find-links --no-emit-trusted-host $(LOCK_ARGS)

# Dozens of tests start the command line, which would compile all of itself each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test control-plane tools helm lint types contracts pytest format stress bench bench-groups bench-release bench-sources wheels image chart sbom release-dry-run docs e2e e2e-programs try \
        airgap lock reference picture clean
.NOTPARALLEL:

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r a b; do printf '%-22s %s\n' "$$a" "$$b"; done

setup: $(READY) ## make .venv with everything locked in requirements/

$(LOCKED): requirements/dev.txt
	@set -eu; chosen=''; why='none of python3.13, python3.12, python3.11, python3 was found'; \
	for python in $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3); do \
	  command -v "$$python" >/dev/null 2>&1 || continue; \
	  version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || { why="$$python does not run"; continue; }; \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { why="$$python is Python $$version"; continue; }; \
	  "$$python" -c 'import venv, ensurepip' 2>/dev/null || { why="$$python ($$version) lacks the venv module (on Debian and Ubuntu: apt install python$$version-venv)"; continue; }; \
	  chosen=$$python; break; \
	done; \
	if [ -z "$$chosen" ]; then echo "jobset-gate needs Python 3.11 or newer with the venv module: $$why." >&2; exit 1; fi; \
	echo "setup: $(VENV) from $$chosen ($$version), packages as locked in requirements/dev.txt"; \
	"$$chosen" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input --require-hashes --only-binary :all: --requirement requirements/dev.txt
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## a gang of 300 pods on the embedded cluster, from admission to release
	@$(BIN)/jobset-gate demo

test: setup control-plane tools lint contracts ## everything: control plane, tools, lint, types, import contracts, tests
	@$(MAKE) --no-print-directory types & types=$$!; \
	code=0; $(MAKE) --no-print-directory pytest || code=$$?; \
	wait $$types || { echo "make types has failed, see above"; code=2; }; \
	exit $$code

control-plane: setup ## find, download or build the real control plane for the tests (shows where it is)
	@$(BIN)/python -m tests.plane

tools: setup ## find or get Helm 3, Helm 4, promtool, both kinds of busybox and Chromium for the tests (shows where they are)
	@$(BIN)/python -m tests.tools

helm: setup
	@$(BIN)/python -m tests.tools helm

lint: setup ## ruff: rules and format
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

format: setup ## let ruff put the code into shape
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

types: setup ## mypy, strict
	$(BIN)/mypy $(CODE)

contracts: setup ## the import contracts of pyproject.toml
	$(BIN)/lint-imports

pytest: setup
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadscope $(PYTEST_ARGS)

# For example `make stress STRESS_ARGS="--schedules 1000 --first 10000"`, or `--source job --seed 211` for one that failed.
STRESS_ARGS ?=
DEEP_TESTS := tests/flow/test_kills.py tests/flow/webhook/test_rolling_update.py \
  tests/unit/controllers/podgroups/test_cache_properties.py tests/unit/controllers/podgroups/test_crashes.py
stress: setup control-plane ## 10,000 random schedules of a gang of each source, then kills at every write; says which fail
	@$(BIN)/python -m tests.stress.run $(STRESS_ARGS)
	@[ -n "$(STRESS_ARGS)" ] || HYPOTHESIS_PROFILE=deep $(BIN)/python -m pytest -q $(DEEP_TESTS)

bench: setup control-plane ## the tables of speed and memory
	@$(BIN)/python -m bench $(BENCH_ARGS)

bench-release: setup helm ## how fast a gang is released, on a kind cluster of its own or that of KUBECONFIG=file; writes docs/release.*
	@$(BIN)/python -m bench.release $(if $(filter command,$(firstword $(origin KUBECONFIG))),--kubeconfig "$(KUBECONFIG)") $(RELEASE_ARGS)

bench-sources: setup helm ## how fast gangs of Jobs, LeaderWorkerSets and start groups are released, against a JobSet of the same pods, on kind
	@$(BIN)/python -m bench.release.sources $(RELEASE_ARGS)

bench-groups: setup control-plane ## how fast pod groups are placed: no gates, the barest loop, ours (BENCH_ARGS as for bench)
	@$(BIN)/python -m bench.groups $(BENCH_ARGS)

wheels: setup ## collect build/wheels for the image: what is locked, for the base image's Python
	@$(BIN)/python requirements/wheels.py $(BASE) build/wheels $(MACHINES:%=+%) requirements/image.txt requirements/build.txt

image: wheels ## build the image IMAGE on the image BASE with docker; the build itself needs no network
	docker build $(BUILD_OPTIONS) --network none --build-arg BASE=$(BASE) --build-arg WHEELS=build/wheels \
	  --build-arg VERSION=$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml) \
	  --build-arg REVISION=$$(git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || echo unknown) --tag $(IMAGE) .
	@docker image inspect --format '{{.Size}}' $(IMAGE) | awk '{printf "image: $(IMAGE) from $(BASE), %d MB\n", $$1 / 1000000}'

chart: helm ## check the chart with Helm 3 and Helm 4 and pack it into build/
	@set -eu; for major in 3 4; do \
	  helm=$$($(BIN)/python -c "from tests.tools.catalog import helm; print(helm($$major))"); \
	  "$$helm" lint --strict charts/jobset-gate; \
	done; \
	"$$helm" package --destination build charts/jobset-gate

sbom: setup ## what the image and the wheel consist of, as CycloneDX, in dist/
	@release/sbom

release-dry-run: helm ## make every artefact of a release twice and compare the bytes; publishes nothing
	@$(BIN)/python -m release dry-run $(RELEASE_ARGS)

e2e: setup helm ## the e2e suite on a kind cluster of its own, or on the cluster of KUBECONFIG=file; KEEP=1
	@$(GIVEN) KEEP="$(KEEP)" $(BIN)/python -m e2e $(E2E_ARGS)

e2e-programs: setup helm ## real JAX, PyTorch and MPI with a late member, on a kind cluster; writes docs/proofs.md (as root on Debian)
	@env -u KUBECONFIG KEEP="$(KEEP)" $(BIN)/python -m e2e.programs $(E2E_ARGS)

try: setup helm ## a kind cluster with JobSet and jobset-gate in it, to look at; DELETE=1 takes it away
	@$(GIVEN) $(BIN)/python -m e2e try $(if $(DELETE),--delete) $(TRY_ARGS)

airgap: setup ## docker, kind and a node image where nothing can be pulled (as root, Debian; see e2e/airgap/README.md)
	@e2e/airgap/setup

lock: setup ## write requirements/*.txt from pyproject.toml and requirements/*.in (LOCK_ARGS=--upgrade for newer ones)
	$(LOCK) --output-file requirements/runtime.txt pyproject.toml
	$(LOCK) --constraint requirements/runtime.txt --extra traces --output-file requirements/image.txt pyproject.toml
	$(LOCK) --output-file requirements/dev.txt requirements/dev.in
	$(LOCK) --constraint requirements/dev.txt --output-file requirements/build.txt requirements/build.in
	$(LOCK) --output-file requirements/go.txt requirements/go.in

reference: setup ## write docs/reference/ from the code
	@$(BIN)/python -m docs.make

docs: setup ## the documents as a site with search, in build/site/html; fails for a broken link
	@$(BIN)/python -m docs.site

picture: setup ## play the demo in a terminal and open the status page in Chromium; write their pictures to docs/pictures
	@$(BIN)/python -m docs.make.picture
	@$(BIN)/python -m docs.make.page

clean: ## remove .venv and caches of the checks (not what lies in the user's cache folder)
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
