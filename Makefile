# The one door: `make help` lists what there is.
#
# Every cargo command selects the same packages with the same profile, so that DuckDB, which takes about 25 minutes on two cores, is compiled
# once per machine. For the same reason the target directory is outside of the clone, and ccache is used when it is installed.

export CARGO_TARGET_DIR := $(or $(VGI_TARGET_DIR),$(HOME)/.cache/vgi-duckdb/target)
SELECTION := --release --workspace --locked

# ccache stands in for the compiler by its place in PATH; naming it in CXX would change what cargo tracks, and compile DuckDB again.
ifneq ($(wildcard /usr/lib/ccache),)
export PATH := /usr/lib/ccache:$(PATH)
endif
# The tools that .ci/run installs.
TOOLS := $(HOME)/.cache/vgi-duckdb/tools
export PATH := $(PATH):$(TOOLS)/bin

# The DuckDB version has one place: the requirement on libduckdb-sys (1.MAJOR*10000+MINOR*100+PATCH.x).
DUCKDB_VERSION := $(shell sed -n 's/^libduckdb-sys = .*"=1\.\([0-9]*\)\..*/\1/p' Cargo.toml | \
	awk '{ printf "%d.%d.%d", $$1 / 10000, $$1 / 100 % 100, $$1 % 100 }')
# A release that exists and that the extension must refuse.
OTHER_DUCKDB_VERSION := 2.0.1

BUILD := build
EXTENSION := $(BUILD)/vgi.duckdb_extension
LIBRARY := $(CARGO_TARGET_DIR)/release/libvgi$(if $(filter Darwin,$(shell uname)),.dylib,.so)
STRIP := strip $(if $(filter Darwin,$(shell uname)),-x,--strip-unneeded)
PYTHON := $(CARGO_TARGET_DIR)/python/duckdb-$(DUCKDB_VERSION)
OTHER_PYTHON := $(CARGO_TARGET_DIR)/python/duckdb-$(OTHER_DUCKDB_VERSION)
CXX_FILES := $(wildcard cpp/*.cpp cpp/*.hpp)

# Only the entry point may be visible from outside, and the symbols that cxx makes for the bridge.
EXPORTED := ^_?(vgi_duckdb_cpp_init|(vgi[$$])?cxxbridge1[$$].*)$$

.DEFAULT_GOAL := help
.PHONY: help build test interop clients bench counts sanitize threads lint format demo package fuzz clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the extension (build/vgi.duckdb_extension) and the worker (the first time: about half an hour)
	cargo build $(SELECTION)
	@mkdir -p $(BUILD)
	$(STRIP) -o $(BUILD)/libvgi.stripped $(LIBRARY)
	$(CARGO_TARGET_DIR)/release/vgi-footer $(BUILD)/libvgi.stripped $(EXTENSION)
	@rm $(BUILD)/libvgi.stripped
	@unwanted=$$(nm -D --defined-only $(EXTENSION) | awk '{ print $$NF }' | grep -Ev '$(EXPORTED)'); \
	if [ -n "$$unwanted" ]; then echo "exported, but should not be:"; echo "$$unwanted" | head -20; exit 1; fi

test: build $(PYTHON)/ready $(OTHER_PYTHON)/ready ## Run all tests; T=text only those whose name contains the text
	VGI_EXTENSION=$(CURDIR)/$(EXTENSION) VGI_PYTHON=$(PYTHON)/bin/python VGI_PYTHON_OTHER=$(OTHER_PYTHON)/bin/python \
		cargo test $(SELECTION) --no-fail-fast $(if $(T),-- $(T))

# Foreign servers are installed once, outside of the clone.
export VGI_INTEROP_DIR ?= $(CARGO_TARGET_DIR)/interop
interop: build $(PYTHON)/ready ## Try every server against every scenario; S=text of a server, T=text of a scenario
	$(PYTHON)/bin/python interop/run.py --extension $(EXTENSION) --worker $(CARGO_TARGET_DIR)/release/vgi-worker \
		--cache $(VGI_INTEROP_DIR) --server "$(S)" --scenario "$(T)"

clients: ## Let clients that others wrote call every function of our worker; S=text of a client
	cargo build --release --locked -p vgi-worker
	python3 interop/clients.py --worker $(CARGO_TARGET_DIR)/release/vgi-worker --cache $(VGI_INTEROP_DIR) --client "$(S)"

bench: build $(PYTHON)/ready ## Measure limits, peers and ours (under 15 minutes); Q=1 in a minute or two, FLIGHTS=file.parquet
	$(PYTHON)/bin/python bench/run.py --extension $(EXTENSION) --worker $(CARGO_TARGET_DIR)/release/vgi-worker \
		--tools $(CARGO_TARGET_DIR)/release/vgi-bench-tools --cache $(VGI_INTEROP_DIR) --output $(BUILD)/bench \
		$(if $(Q),--quick) $(if $(FLIGHTS),--flights $(FLIGHTS)) $(if $(G),--only $(G))

counts: build $(PYTHON)/ready ## Count the instructions of the hot paths with callgrind (needs valgrind)
	@mkdir -p $(BUILD)/counted
	$(CARGO_TARGET_DIR)/release/vgi-footer $(LIBRARY) $(BUILD)/counted/vgi.duckdb_extension
	$(PYTHON)/bin/python bench/counts.py --extension $(BUILD)/counted/vgi.duckdb_extension --worker $(CARGO_TARGET_DIR)/release/vgi-worker

# Sanitizers want to be loaded before everything else, and are not in the interpreter or the test runner.
SANITIZED := $(BUILD)/sanitized/vgi.duckdb_extension
sanitize: $(PYTHON)/ready ## Run the SQL tests with AddressSanitizer and UndefinedBehaviorSanitizer in the glue
	VGI_SANITIZE=address,undefined cargo build $(SELECTION)
	@mkdir -p $(dir $(SANITIZED))
	$(CARGO_TARGET_DIR)/release/vgi-footer $(LIBRARY) $(SANITIZED)
	VGI_SANITIZE=address,undefined cargo test $(SELECTION) -p vgi --test sqllogic --no-run
	VGI_SANITIZE=address,undefined VGI_EXTENSION=$(CURDIR)/$(SANITIZED) VGI_TEST_SECONDS=600 \
		LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0:detect_odr_violation=0 UBSAN_OPTIONS=print_stacktrace=1 \
		$(CARGO_TARGET_DIR)/release/deps/$$(cd $(CARGO_TARGET_DIR)/release/deps && ls -t | grep -E '^sqllogic-[0-9a-f]+$$' | head -1) $(T)
	cargo build $(SELECTION)

threads: export CARGO_TARGET_DIR := $(CARGO_TARGET_DIR)/threads
threads: ## Run the tests of the crates under ThreadSanitizer (needs the source of the standard library); T=text as for test
	tests/threads/run.sh $(T)

lint: ## Check everything that CI checks before the tests
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	clang-format --dry-run -Werror $(CXX_FILES)
	cargo clippy $(SELECTION) --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc $(SELECTION) --no-deps
	cargo deny --locked check licenses bans sources
	@if timeout 120 cargo deny fetch db > /dev/null 2>&1; then cargo deny --locked check advisories; \
	else echo "the advisory database cannot be reached: advisories are not checked"; fi

format: ## Format the Rust and the C++ code
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	clang-format -i $(CXX_FILES)

demo: build $(PYTHON)/ready ## Start the worker, run demo/demo.sql in the Python wheel and show what went over the wire
	@$(PYTHON)/bin/python demo/run_demo.py --extension $(EXTENSION) --worker $(CARGO_TARGET_DIR)/release/vgi-worker

package: build ## Pack extension, worker, licences and README into build/*.tar.gz
	@set -e; name=$$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/vgi-\1/p' Cargo.toml)-duckdb-v$(DUCKDB_VERSION); \
	rm -rf $(BUILD)/$$name; mkdir -p $(BUILD)/$$name; \
	cp $(EXTENSION) $(CARGO_TARGET_DIR)/release/vgi-worker LICENSE-MIT LICENSE-APACHE README.md $(BUILD)/$$name/; \
	strip $(BUILD)/$$name/vgi-worker; \
	tar -C $(BUILD) -czf $(BUILD)/$$name.tar.gz $$name; rm -rf $(BUILD)/$$name; ls -l $(BUILD)/$$name.tar.gz

# Seconds of each target.
FUZZ_SECONDS := 10

# Runs on a stable compiler: without a sanitizer, since what is looked for are panics, overflows, invalid Arrow, memory and time.
fuzz: export CARGO_TARGET_DIR := $(CARGO_TARGET_DIR)/fuzz
fuzz: ## Fuzz everything that reads what a stranger sent, FUZZ_SECONDS each (needs cargo-fuzz)
	cd fuzz && cargo run --quiet --example seeds
	cargo fuzz build --sanitizer none
	@mkdir -p $(BUILD); for target in $$(cargo fuzz list); do \
		cargo fuzz run --sanitizer none $$target -- -max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=1024 -timeout=10 \
			-print_final_stats=1 > $(BUILD)/fuzz.log 2>&1 || { cat $(BUILD)/fuzz.log; exit 1; }; \
		echo "$$target: $$(awk '/number_of_executed_units/ { print $$2 }' $(BUILD)/fuzz.log) inputs"; \
	done

clean: ## Remove build/; the compiled DuckDB in the target directory stays
	rm -rf $(BUILD)

# A Python environment with one wheel, made once per version.
$(CARGO_TARGET_DIR)/python/duckdb-%/ready:
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check duckdb==$*
	touch $@
