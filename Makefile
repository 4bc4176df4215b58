# The menu of this repository. Everything else hangs on these words; `make` alone prints them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One stamp for each lock that is installed: what running needs, what tests need, and the tools of each target.
RUNS := $(VENV)/.runs
TESTS := $(VENV)/.tests
STAMP := $(VENV)/.installed
EXAMPLES := $(VENV)/.examples
BROWSER := $(VENV)/.browser
DOCS := $(VENV)/.docs
# In this order, one by one: an older leaderworkerset removes its script lws, before lwsctl installs it.
PACKAGES := packages/kuberuntime packages/localkube packages/leaderworkerset packages/lwsctl
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
VERSION := import platform; print(platform.python_version())
# A worker that ends in the middle of a test is not replaced: by groups, pytest-xdist 3.8 then waits for ever.
SIDE_BY_SIDE := -n auto --dist loadgroup --no-loadscope-reorder --max-worker-restart=0
# A test that hangs shows where, and fails by its name: its process ends. The longest tests take some minutes.
NO_HANGING := -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true

# Where the environment forbids it, tests and every `lws` they start are compiled anew each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup dev demo fmt check test test-kubernetes test-node test-all nightly night unit unit-all controlplane conformance bench generate wheels release recording docs docs-serve lock coverage contract parity simulate extras frameworks browser changelog conformance image local-image clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(RUNS) ## make .venv with .venv/bin/lws in it: what running needs
ifneq ($(origin PYTHON),file)
	@wanted=$$($(PYTHON) -c '$(VERSION)'); has=$$($(BIN)/python -c '$(VERSION)'); test "$$wanted" = "$$has" || \
	{ echo "$(VENV) is of Python $$has, and PYTHON is $$wanted: remove $(VENV), or choose another place: make VENV=DIRECTORY" >&2; exit 1; }
endif

dev: setup $(STAMP) ## install the tools of development, too: types, lint, locks

$(RUNS): requirements/local.lock requirements/build.lock $(PACKAGES:=/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ": make PYTHON=/path/to/another" if sys.version_info < (3, 11) else 0)'
	@echo "Installing what running needs into $(VENV), from a package index; that takes a minute or so …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r requirements/local.lock -r requirements/build.lock
	@for package in $(PACKAGES); do $(PIP) --no-deps --no-build-isolation --editable $$package || exit 1; done
	@touch $@

$(TESTS): requirements/test.lock packages/testkit/pyproject.toml $(RUNS)
	@echo "Installing what tests need into $(VENV) …"
	@$(PIP) --require-hashes -r requirements/test.lock
	@$(PIP) --no-deps --no-build-isolation --editable packages/testkit
	@touch $@

$(STAMP): requirements/dev.lock $(TESTS)
	@echo "Installing the tools of development into $(VENV) …"
	@$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@

$(EXAMPLES): requirements/examples.lock $(TESTS)
	@echo "Installing JAX for an example into $(VENV) (550 MB) …"
	@$(PIP) --require-hashes -r requirements/examples.lock
	@touch $@

$(BROWSER): requirements/browser.lock $(TESTS)
	@echo "Installing what drives a browser into $(VENV) …"
	@$(PIP) --require-hashes -r requirements/browser.lock
	@touch $@

demo: $(RUNS) ## two groups of four processes compute something together, and end
	@echo "Starting a cluster of this machine, and two groups of four ranks in it; it takes some seconds …"
	$(BIN)/lws run -f examples/allreduce/lws.yaml --image allreduce=examples/allreduce --until done --timeout 60

fmt: dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

check: dev ## format, lint, types, import contracts, generated files, language, budgets
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python deploy/generate.py --check
	$(BIN)/python -m docs.generate_cli --check
	$(BIN)/python -m docs.generate_causes --check
	$(BIN)/python -m docs.generate_matrix --check
	$(BIN)/python -m docs.generate_compatibility --check
	$(BIN)/python -m docs.generate_choose --check
	$(BIN)/python -m docs.generate_reference --check
	$(BIN)/python -m docs.generate_pictures --check
	$(BIN)/python -m docs.generate_index --check
	$(BIN)/pytest -q tests/repository/test_language.py tests/repository/test_budgets.py

bench: dev ## measure: start, memory, rest, the API server, what the manager writes, thousands of pods (seven minutes); draw all runs
	$(BIN)/python -m bench.everything

generate: dev ## write the generated manifests below deploy/, and the reference of commands, causes and of what is tried together
	$(BIN)/python deploy/generate.py
	$(BIN)/python -m docs.generate_cli
	$(BIN)/python -m docs.generate_causes
	$(BIN)/python -m docs.generate_matrix
	$(BIN)/python -m docs.generate_compatibility
	$(BIN)/python -m docs.generate_choose
	$(BIN)/python -m docs.generate_reference
	$(BIN)/python -m docs.generate_pictures
	$(BIN)/python -m docs.generate_index

# What failed is tried once more, alone. More than MOST_UNSTABLE tests that pass only then fail the run, too.
PYTEST = $(BIN)/pytest $(SIDE_BY_SIDE) $(NO_HANGING)
AGAIN = { test $$? -eq 1 && echo "What failed is tried once more, alone:" && $(BIN)/pytest $(NO_HANGING) --second-try --last-failed --last-failed-no-failures=none $(1); }

test: setup $(TESTS) ## the fast proof: every rule once, on the embedded cluster (6 minutes; no Go)
	$(PYTEST) --tier fast $(ARGS) || $(call AGAIN,--tier fast)

# What a policy of kube-apiserver does in place of the webhook: names, variables and places of pods, also of replaced ones.
OF_PODS := $(addprefix packages/leaderworkerset/tests/integration/lws/test_,creation.py failure.py placement.py restart_in_place.py)

test-kubernetes: setup $(TESTS) controlplane ## the same integration suite on a real control plane, conformance, kubectl, installers, upgrades
	$(PYTEST) --tier kubernetes $(RECORD) $(ARGS) || $(call AGAIN,--tier kubernetes)
	$(if $(ARGS),,export POD_ADMISSION=Policy; $(PYTEST) --tier kubernetes $(OF_PODS) || $(call AGAIN,--tier kubernetes $(OF_PODS)))
	$(if $(ARGS),,$(BIN)/python -m tests.controlplane.rotation $(NO_HANGING))

test-node: setup $(TESTS) ## groups of real containers on real kubelets (root, Debian)
	$(BIN)/python -m tests.node $(NO_HANGING) $(ARGS)

test-all: test test-kubernetes test-node unit-all browser nightly ## everything, on every Python and Kubernetes of this machine (hours)

nightly: export THOROUGH := 1
nightly: RECORD := --record docs/reference/compatibility.jsonl
nightly: $(EXAMPLES) docs test test-kubernetes ## what seldom breaks, all versions of Kubernetes, examples with JAX, and a thousand simulated schedules
	KUBERNETES=1.37 $(PYTEST) --tier kubernetes $(RECORD) packages/leaderworkerset/tests/integration packages/lwsctl/tests/integration packages/leaderworkerset/tests/parity tests/kubernetes
	$(MAKE) simulate SEEDS=1000
	$(BIN)/python -m tests.controlplane.build all
	for version in 1.34 1.35; do KUBERNETES=$$version $(PYTEST) --tier kubernetes $(RECORD) -k 'not other_version' packages/leaderworkerset/tests/integration packages/lwsctl/tests/integration || exit 1; done

night: dev frameworks ## the long campaigns (hours): schedules, fuzzers, broken rules, memory, a hostile tenant; the report is build/night.md (ARGS=--list)
	@$(BIN)/python -m tests.night $(ARGS)

unit: setup $(TESTS) ## the fast tests: those of the four packages that take less than a tenth of a second
	@echo "Those of lwsctl here; at the same time those of the other packages and of the repository, printed at the end:"
	@$(BIN)/pytest -q -m 'not slow' packages/kuberuntime/tests/unit packages/localkube/tests/unit packages/leaderworkerset/tests/unit tests/repository > $(VENV)/.unit 2>&1 & others=$$!; \
	$(BIN)/pytest -q -m 'not slow' packages/lwsctl/tests/unit; failed=$$?; \
	wait $$others || failed=$$?; cat $(VENV)/.unit; exit $$failed

unit-all: setup $(TESTS) ## the fast tests, and one `lws run`, on every further Python of this machine, each in .venvs/VERSION
	$(BIN)/python -m tests.interpreters $(ARGS)

controlplane: setup $(TESTS) ## build the control planes that the tests run on, where they are not yet
	@$(BIN)/python -m tests.controlplane.build

conformance: setup $(TESTS) controlplane ## record again what kube-apiserver and its controllers answer, for the tests of localkube
	$(BIN)/pytest --renew packages/localkube/tests/conformance

simulate: setup $(TESTS) ## play random schedules with faults in simulated clusters (SEEDS=2000 PROCESSES=2, or SEED=12.3 for one)
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED) $(if $(BUG),--bug $(BUG)),--crashes --misuse $(or $(MISUSE),20) --clocks $(or $(CLOCKS),20) --keys $(or $(KEYS),20) --gangs $(or $(GANGS),20) --in-place $(or $(IN_PLACE),20) --moves $(or $(MOVES),20) --seeds $(or $(SEEDS),100) --first $(or $(FIRST),1) --processes $(or $(PROCESSES),2))

frameworks: build/frameworks/.installed ## install small frameworks (MPI, 15 MB) into build/frameworks, for the tests of their manifests

build/frameworks/.installed: requirements/frameworks.lock
	@rm -rf build/frameworks
	@$(PYTHON) -m venv build/frameworks
	@build/frameworks/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/frameworks.lock
	@touch $@

extras: setup $(TESTS) ## build Helm, promtool, Kueue, the Go manager, operator-verify and scheduler-plugins for the tests that use them (minutes); without them these are skipped
	@$(BIN)/python -m tests.kubernetes.programs.build

wheels: setup ## build the four wheels into dist/
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist $(addprefix ./,$(PACKAGES))

release: setup ## build what a release consists of into dist/: wheels, sources, chart, manifests, bundles, checksums
	rm -rf dist
	$(BIN)/python -m deploy.release dist $(RELEASE)

changelog: dev ## move the files of changelog.d into CHANGELOG.md, below the version that the packages have
	$(BIN)/scriv collect

recording: dev ## record `lws run`, and a rollout that gets stuck, anew for the front page
	$(BIN)/python docs/record_run.py
	$(BIN)/python docs/record_rollout.py

$(DOCS): requirements/docs.lock $(STAMP)
	@echo "Installing what builds the site into $(VENV) …"
	@$(PIP) --require-hashes -r requirements/docs.lock
	@touch $@

docs: $(DOCS) ## the documentation as a site, with search, in build/site/html; checks its links, and that it loads nothing from elsewhere
	$(BIN)/python -m docs.buildsite

docs-serve: $(DOCS) ## build that site, and serve it on this machine
	$(BIN)/python -m docs.buildsite --serve

browser: setup $(BROWSER) ## the dashboard and the site in a real browser (Chromium must be there)
	$(BIN)/pytest $(NO_HANGING) tests/browser tests/kubernetes/programs/test_site.py

LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
OWN := --no-emit-package kuberuntime --no-emit-package localkube --no-emit-package leaderworkerset

lock: dev ## pin the dependencies anew
	$(LOCK) $(OWN) -o requirements/runtime.lock packages/leaderworkerset/pyproject.toml
	$(LOCK) $(OWN) -c requirements/runtime.lock -o requirements/command.lock packages/lwsctl/pyproject.toml
	$(LOCK) $(OWN) -c requirements/command.lock --extra local -o requirements/local.lock packages/lwsctl/pyproject.toml
	$(LOCK) -c requirements/local.lock -o requirements/test.lock requirements/test.in
	@for name in dev examples browser build; do $(LOCK) -c requirements/local.lock -c requirements/test.lock -o requirements/$$name.lock requirements/$$name.in; done
	$(LOCK) -o requirements/go.lock requirements/go.in
	$(LOCK) -c requirements/dev.lock -o requirements/docs.lock requirements/docs.in
	$(LOCK) -c requirements/docs.lock -o requirements/mkdocs.lock requirements/mkdocs.in
	$(LOCK) -o requirements/frameworks.lock requirements/frameworks.in
	$(BIN)/python -m tests.repository.lockedwheels

coverage: dev ## every branch of manifests/, objects/, api/ and core/ is taken by their unit tests
	$(BIN)/coverage run --source=kuberuntime.manifests,kuberuntime.objects,leaderworkerset.api,leaderworkerset.core --branch -m pytest -q packages/kuberuntime/tests/unit/kuberuntime/manifests packages/kuberuntime/tests/unit/kuberuntime/objects packages/leaderworkerset/tests/unit/leaderworkerset/api packages/leaderworkerset/tests/unit/leaderworkerset/core
	$(BIN)/coverage report --show-missing --skip-covered --fail-under=100

contract: setup $(TESTS) ## which tests prove which rule of the contract, and where (-v: names; --run: by passing tests)
	$(BIN)/python -m tests.contract $(ARGS)

parity: setup $(TESTS) ## what our manager leaves, against what was recorded of the Go manager, on both clusters
	$(BIN)/python -m tests.parity $(ARGS)

clean: ## remove what was built
	rm -rf $(VENV) .venvs build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

image: setup ## build the manager's image with podman or buildah: make image BASE_IMAGE=REGISTRY/NAME:TAG@sha256:DIGEST
	$(BIN)/python deploy/image.py $(and $(TARGET),--target $(TARGET)) --base "$(or $(BASE_IMAGE),$(error BASE_IMAGE is not set: make image BASE_IMAGE=REGISTRY/NAME:TAG@sha256:DIGEST, an image of Python 3.13))"

local-image: ## build the image of lws with the embedded cluster: make local-image BASE_IMAGE=REGISTRY/NAME:TAG@sha256:DIGEST
	$(MAKE) image TARGET=local
