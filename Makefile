# blockdesk. Go 1.26 and make are all it takes to run and to test it; the local
# chain that claims are settled on wants Node 20 and npm too.

GO       ?= go
ARGS     ?=
FUZZTIME ?= 10s
COUNT    ?= 1
BENCH    ?= .
TIMEOUT  ?= 30m
PARALLEL ?= 4
NPM_RETRIES ?= 2
TOOLS    := bin/.tools
COMMIT   := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

# A clone in another folder finds what was compiled in the first one, and no binary names
# a folder of the machine that built it.
export GOFLAGS := $(GOFLAGS) -trimpath

# go test with a report of what ran, what was skipped and why, and what was slow.
# Without debug information a test links in half the time; stacks keep their lines.
SUITE    := $(GO) run ./internal/suite
LINK     := -ldflags=-w

# feed has a second half for systems without epoll, which the tag builds here.
# So does the simulation, because virtual time cannot wait for epoll.
VET      := $(GO) vet ./... && $(GO) vet -tags feed_goroutines ./feed ./e2e/simulation
SIMULATE := $(LINK) -tags feed_goroutines ./e2e/simulation

# Most tests wait: for a chain's slots, for child processes. So more of them run side
# by side than there are processors: PARALLEL of a package, and SIDE packages, in the
# order of their names here. The longest come first.
SIDE     ?= 4
PACKAGES := ./e2e/docs ./e2e/sdk ./e2e/pages ./settle ./e2e/settle ./fixgw/... ./e2e/service ./e2e/cluster ./e2e/... ./cmd/... ./...

# The packages where goroutines meet: those whose code or tests start one.
STARTS         = ^[[:space:]]*go |\.Go\(
RACE_FILES     = $(shell grep -rlE --include='*.go' --exclude-dir=node_modules '$(STARTS)' $(wildcard cmd desk e2e engine feed fixgw httpgw internal/solana mirror persist prices service settle))
RACE_PACKAGES  = $(addprefix ./,$(sort $(patsubst %/,%,$(dir $(RACE_FILES)))))

# Tests mark themselves as too slow for the detector (runtest.SkipUnderRace);
# BLOCKDESK_RACE_ALL=1 make race races them all, for most of an hour.

# What make stress does: the suite N times beside LOAD busy processes, on CORES
# processors (0: all), each time in another order.
N        ?= 3
ROUNDS   ?= 200
FOR      ?= 1m
SEED     ?= 1
SEEDS    ?= 1000000
FAULT    ?= .
LOAD     ?= 0
CORES    ?= 0
STRESS_TIMEOUT ?= 90m

# The packages without goroutines, processes and sockets, and what checks the source.
QUICK    := ./market/... ./engine/... ./internal/lint/... ./internal/await/... ./internal/solana/... ./settle/binding/... ./catalog/...

.DEFAULT_GOAL := help
.PHONY: help run build sandbox sdk try-sandbox board docs lint-openapi browser screenshots quick test test-all test-tools stress race simulate simulate-faults crash adversary newcomer claims follow mirror-follow cluster-rounds check fmt fuzz bench bench-ws tools clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: try-sandbox ## build, then serve the demo from ./data until Ctrl-C (more flags: ARGS=--open)
	@$(MAKE) --no-print-directory build
	bin/blockdesk serve --demo --set demo_history_hours=25 --data ./data $(ARGS)

build: ## build bin/blockdesk
	$(GO) build -ldflags '-X blockdesk/bench.commit=$(COMMIT)' -o bin/blockdesk ./cmd/blockdesk

sandbox: internal/sandbox/runtime/litesvm.tar.gz ## install the local chain's runtime (needs Node 20 and npm)

# What is built after this contains the runtime and serves the demo from any folder.
internal/sandbox/runtime/litesvm.tar.gz: internal/sandbox/node_modules/.package-lock.json
	tar -C internal/sandbox --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - node_modules/litesvm-linux-x64-gnu | gzip -9n > $@.part
	mv $@.part $@

internal/sandbox/node_modules/.package-lock.json: internal/sandbox/package-lock.json
	npm --prefix internal/sandbox ci --no-audit --no-fund --loglevel=error --fetch-retries=$(NPM_RETRIES)

sdk: sdk/typescript/node_modules/.package-lock.json ## make the TypeScript SDK anew of the OpenAPI document (needs Node 20 and npm)
	npm --prefix sdk/typescript run build

sdk/typescript/node_modules/.package-lock.json: sdk/typescript/package-lock.json
	npm --prefix sdk/typescript ci --no-audit --no-fund --loglevel=error --fetch-retries=$(NPM_RETRIES)

# Where it cannot be installed the demo says what is missing and runs without it,
# and the tests that settle are skipped.
try-sandbox:
	@if command -v npm >/dev/null; then \
	  $(MAKE) --no-print-directory sandbox NPM_RETRIES=0 || echo "npm has not installed the local chain"; \
	else echo "no npm here: no local chain"; fi

board: httpgw/board/node_modules/.package-lock.json ## build the pages for people into httpgw/board/dist (needs Node 20 and npm)
	npm --prefix httpgw/board run --silent check
	npm --prefix httpgw/board run --silent build

httpgw/board/node_modules/.package-lock.json: httpgw/board/package-lock.json
	npm --prefix httpgw/board ci --no-audit --no-fund --loglevel=error --fetch-retries=$(NPM_RETRIES)

docs: httpgw/reference/node_modules/.package-lock.json ## build the page that shows the OpenAPI document into httpgw/reference/dist (npm)
	npm --prefix httpgw/reference run --silent build

httpgw/reference/node_modules/.package-lock.json: httpgw/reference/package-lock.json
	npm --prefix httpgw/reference ci --no-audit --no-fund --loglevel=error --fetch-retries=$(NPM_RETRIES)

lint-openapi: internal/clients/openapi/node_modules/.package-lock.json ## hold the OpenAPI document to Redocly's rules (needs Node 20 and npm)
	$(GO) test -count 1 -run '^TestLint$$' -v ./sdk/openapitest

internal/clients/openapi/node_modules/.package-lock.json: internal/clients/openapi/package-lock.json
	npm --prefix internal/clients/openapi ci --no-audit --no-fund --loglevel=error --fetch-retries=$(NPM_RETRIES)

browser: internal/clients/browser/node_modules/.package-lock.json ## install the Chromium that looks at the pages (npm, 60 MB)

internal/clients/browser/node_modules/.package-lock.json: internal/clients/browser/package-lock.json
	npm --prefix internal/clients/browser ci --no-audit --no-fund --loglevel=error --fetch-retries=$(NPM_RETRIES)

screenshots: browser ## take the pictures of README.md and docs of the demo that runs (make run)
	node internal/clients/browser/screenshots.mjs $(ARGS)

quick: $(TOOLS) ## format, vet, lint and the pure packages' tests, in under a minute: for every change
	@unformatted=$$(bin/gofumpt -l $(SOURCES)); \
	if [ -n "$$unformatted" ]; then printf 'not formatted (make fmt):\n%s\n' "$$unformatted"; exit 1; fi
	$(VET)
	bin/golangci-lint run ./...
	@$(SUITE) -- $(LINK) -short $(QUICK)

test: try-sandbox ## vet and run every test; what needs a tool that is not here is skipped and named
	$(VET)
	@$(SUITE) -- $(LINK) -p $(SIDE) -parallel $(PARALLEL) -timeout $(TIMEOUT) $(PACKAGES)
	@$(SUITE) -- -timeout $(TIMEOUT) $(SIMULATE)

test-all: test-tools ## install what tests need beside Go (npm, apt-get), then run every test and skip none
	$(VET)
	@BLOCKDESK_TEST_ALL=1 $(SUITE) -- $(LINK) -count 1 -p $(SIDE) -parallel $(PARALLEL) -timeout $(TIMEOUT) $(PACKAGES)

test-tools: ## install what tests need beside Go, as far as this machine allows
	internal/suite/install.sh

stress: try-sandbox ## run every test N times (3) under LOAD (0) busy processes on CORES (0: all) processors, in random order
	@$(SUITE) -n $(N) -load $(LOAD) -cores $(CORES) -shuffle -- $(LINK) -count 1 -p $(SIDE) -parallel $(PARALLEL) -timeout $(STRESS_TIMEOUT) $(PACKAGES)

race: ## run the concurrent packages' tests under the race detector (needs a C compiler)
	@BLOCKDESK_FIX_SOAK='6s 50' $(SUITE) -- $(LINK) -race -p $(SIDE) -parallel $(PARALLEL) -timeout 30m $(RACE_PACKAGES)
	@$(SUITE) -- $(LINK) -race -timeout 30m -tags feed_goroutines ./feed

adversary: ## hostile buyers, a lying node and kills, ROUNDS (200) times, with a ledger of its own (make test tries 3)
	ADVERSARY_ROUNDS=$(ROUNDS) $(GO) test -count 1 -timeout $(TIMEOUT) -run '^TestAdversary$$' -v ./settle

simulate: ## run the service on virtual time for FOR (1m), seed after seed from SEED (1) on, SEEDS of them at most
	BLOCKDESK_SIMULATE_FOR=$(FOR) BLOCKDESK_SIMULATE_SEED=$(SEED) BLOCKDESK_SIMULATE_SEEDS=$(SEEDS) $(GO) test -count 1 -timeout 24h -run '^TestSimulation$$' -v $(SIMULATE)

simulate-faults: ## plant each fault whose name matches FAULT (all) and simulate until it is found
	BLOCKDESK_SIMULATE_FAULTS='$(FAULT)' $(GO) test -count 1 -timeout 24h -run '^TestFaults$$' -v $(SIMULATE)

crash: ## crash the journal at 20,000 writes and syncs (make test tries 2,000)
	BLOCKDESK_CRASH_POINTS=20000 $(GO) test -count 1 -timeout $(TIMEOUT) -run '^TestCrash$$' -v ./persist

newcomer: ## walk README.md from a clean clone to a settled claim, and print the seconds of each step
	$(GO) test -count 1 -timeout $(TIMEOUT) -run '^TestNewcomer' -v ./e2e/docs

claims: ## race 1,000,000 claims for a few tranches, in the engine and over REST (make test: fewer)
	BLOCKDESK_CLAIMS=1000000 $(GO) test -count 1 -timeout 20m -run '^(TestClaimsRush|TestClaimsRace)$$' -v ./engine ./httpgw

follow: ## follow an hour of recorded flow by npm's ws and server-sent events, through kills (make test: its beginning)
	BLOCKDESK_FEED_SECONDS=600 $(GO) test -count 1 -timeout 20m -run '^TestFeedThroughAnHour$$' -v ./e2e/feed

mirror-follow: ## follow a pool and a book on the local chain for ten minutes, through lying nodes, forks and kills (make test: half a minute)
	BLOCKDESK_MIRROR_SECONDS=600 $(GO) test -count 1 -timeout 20m -run '^TestMirrorFollowsTheChain$$' -v ./e2e/mirror

cluster-rounds: ## 200 rounds of faults on three processes of a group under load (make test: 4)
	BLOCKDESK_CLUSTER_ROUNDS=200 $(GO) test -count 1 -timeout 40m -run '^(TestClusterRounds|TestClusterSigns)$$' -v ./e2e/cluster

check: $(TOOLS) ## formatting, golangci-lint (.golangci.yml) and unreachable code
	bin/golangci-lint run ./...
	@dead=$$(bin/deadcode -test ./...); \
	if [ -n "$$dead" ]; then printf 'unreachable:\n%s\n' "$$dead"; exit 1; fi

fmt: $(TOOLS) ## format the Go files
	bin/gofumpt -w $(SOURCES)

# Left to itself, go test may spend a minute on making one input smaller.
fuzz: ## run each fuzz target for FUZZTIME (10s)
	@set -e; for dir in $(FUZZ_DIRS); do \
	  for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | cut -c6-); do \
	    echo "$$dir $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x ./$$dir; \
	  done; \
	done

bench: ## run the Go benchmarks matching BENCH, COUNT times; compare two runs with bin/benchstat
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 60m ./...

bench-ws: build ## the feed beside raw writes in half a minute; FULL=1: as bench/RESULTS.md has it
	bin/blockdesk bench ws $(if $(FULL),,--rounds 3 --many 1000 --part encode,fanout,idle)

tools: $(TOOLS) ## build the pinned developer tools into bin/ (about two minutes, once)

$(TOOLS): internal/devtools/go.mod internal/devtools/go.sum
	@mkdir -p bin
	$(GO) -C internal/devtools build -o ../../bin/ tool
	@touch $@

clean: ## remove bin/ and the programs that tests built (./data is the demo's journal: remove it yourself)
	rm -rf bin "$${XDG_CACHE_HOME:-$$HOME/.cache}/blockdesk-e2e"

# Evaluated only by the targets that name them.
SOURCES   = $(wildcard market engine persist desk catalog feed fixgw httpgw mirror settle service sdk bench cmd e2e internal)
FUZZ_DIRS = $(sort $(patsubst %/,%,$(dir $(shell grep -rlE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz' $(SOURCES)))))
