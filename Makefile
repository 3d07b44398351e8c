# One target per habit; CI calls the same ones.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BIN     := bin/corpus-git
FUZZTIME ?= 10s
PACKAGES ?= ./...
TESTFLAGS ?=
export CGO_ENABLED = 0

.PHONY: build demo test race salt lint vuln fuzz bench crash docs containers clean

build: ## a static binary in bin/
	$(GO) build -trimpath -ldflags "-s -w -X corpus-git/cmd/corpus-git/app.release=$(VERSION)" -o $(BIN) ./cmd/corpus-git

demo: build ## serve, create a project, push a sample, leave it running
	$(BIN) demo $(ARGS)

test: ## everything that can be tested as this user; PACKAGES and TESTFLAGS for a part
	$(GO) test -timeout 20m $(TESTFLAGS) $(PACKAGES)

race: ## the same with the race detector, which needs a C compiler; but for the crash test, which starts hundreds of servers
	CGO_ENABLED=1 $(GO) test -race -timeout 30m -skip '^TestCrash$$' ./...

salt: ## the conformance suite against the real Salt, which .ci/salt installs in the user's cache
	@bin=$$(./.ci/salt) && SALT_CALL=$$bin $(GO) test -count=1 -timeout 20m ./sls/slstest ./sls/salt

lint: ## formatting, vet, the room table
	@files=$$(gofmt -l .); test -z "$$files" || { echo "$$files"; echo "run gofmt -w on the files above"; exit 1; }
	$(GO) vet ./...
	golangci-lint run

vuln: ## known vulnerabilities in what is really called
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

fuzz: ## every fuzzer for FUZZTIME
	FUZZTIME=$(FUZZTIME) ./.ci/fuzz

bench: build ## the comparisons of bench/RESULTS.md
	$(GO) run ./bench

crash: export CORPUS_GIT_CRASH_SEED ?= $(shell date +%s)
crash: ## faults, kills and power cuts at every call, and a server killed everywhere, chosen anew; CORPUS_GIT_CRASH_KILLS=1000 for the long run
	CORPUS_GIT_CRASH_KILLS=$${CORPUS_GIT_CRASH_KILLS:-100} $(GO) test -count=1 -timeout 60m ./archive ./git/checkout ./procedures
	$(GO) test ./cmd/corpus-git -run '^(TestCrash|TestPowerCut)$$' -count=1 -timeout 180m -v

docs: build ## man pages, completions, generated references
	$(BIN) docs --dir dist/docs

containers: ## the skeletons and the stories of failing releases in a booted Debian 12; needs root, debootstrap and systemd-nspawn
	$(GO) test -tags containers -count=1 -timeout 30m -v ./cmd/corpus-git -run '^TestContainer'

clean:
	rm -rf bin dist
