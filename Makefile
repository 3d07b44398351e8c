# One target per habit; CI calls the same ones.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BIN     := bin/corpus-git
FUZZTIME ?= 10s
PACKAGES ?= ./...
TESTFLAGS ?=
export CGO_ENABLED = 0
# As the program is built: what is compiled for it serves the tests and the linters, too.
export GOFLAGS := -trimpath $(shell $(GO) env GOFLAGS)

.PHONY: build browser demo test race salt lint vuln fuzz bench crash docs containers install packages image corpus clean

build: ## a static binary in bin/
	$(GO) build -ldflags "-s -w -X corpus-git/cmd/corpus-git/app.release=$(VERSION)" -o $(BIN) ./cmd/corpus-git

demo: build ## serve, create a project, push a sample, leave it running
	$(BIN) demo $(ARGS)

test: ## everything that can be tested as this user; PACKAGES and TESTFLAGS for a part; lint vets
	$(GO) test -vet=off -timeout 20m $(TESTFLAGS) $(PACKAGES)

# What has goroutines or shares something between them: the rest can have no race. The one goroutine of git/upload runs in the sessions of receive. Of the scenarios, those in which things happen at once.
SHARED = $(shell grep -rlE --include='*.go' '"sync(/atomic)?"|go func|\.Go\b' . | xargs -n1 dirname | sort -u | grep -vE '^./(bench|cmd/corpus-git|git/upload)$$')
ATONCE = $(shell cd cmd/corpus-git/testdata/script && grep -lE '&[a-z0-9_]*&?$$' *.txtar | grep -vE '^(interop_|nodes|converge_nodes|hubs|mirror_packages|remote|rollouts|agents|jobs|registry)' | sed 's/.txtar$$//' | paste -sd'|')

ALONE = ^TestBombs$$|^TestHostile|Agrees?With|OfAYear$$|RandomHistories|CollapsedIsWhole|RemakingIsBounded|EveryCallMayFail|KilledAnywhere|PowerMayFail

race: ## the same with the race detector, which needs a C compiler; but for packages without goroutines, scenarios in which one thing happens after the other, what starts hundreds of servers (TestCrash, TestPowerCut), and what does a lot in one goroutine (ALONE)
	CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 30m -skip '$(ALONE)' $(SHARED)
	CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 30m -run '^TestScenarios$$/^($(ATONCE))$$' ./cmd/corpus-git

salt: ## the conformance suite against the real Salt, which .ci/salt installs in the user's cache
	@bin=$$(./.ci/salt) && SALT_CALL=$$bin $(GO) test -vet=off -count=1 -timeout 20m ./sls/slstest ./sls/salt

lint: ## formatting, all that go vet looks for and more, the room table
	@files=$$(gofmt -l .); test -z "$$files" || { echo "$$files"; echo "run gofmt -w on the files above"; exit 1; }
	golangci-lint run

vuln: ## known vulnerabilities in what is really called
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

fuzz: ## every fuzzer for FUZZTIME
	FUZZTIME=$(FUZZTIME) ./.ci/fuzz

bench: build ## the comparisons of bench/RESULTS.md
	$(GO) run ./bench

crash: export CORPUS_GIT_CRASH_SEED ?= $(shell date +%s)
crash: ## faults, kills and power cuts at every call, and a server killed everywhere, chosen anew; CORPUS_GIT_CRASH_KILLS=1000 and CORPUS_GIT_CRASH_ROUNDS=500 CORPUS_GIT_CRASH_AGENTS=20 for the long run
	CORPUS_GIT_CRASH_KILLS=$${CORPUS_GIT_CRASH_KILLS:-100} $(GO) test -count=1 -timeout 60m ./archive ./git/checkout ./procedures
	$(GO) test ./cmd/corpus-git -run '^(TestCrash|TestPowerCut)$$' -count=1 -timeout 180m -v
	$(GO) test -tags fleet ./cmd/corpus-git -run '^TestCrashFleet$$' -count=1 -timeout 600m -v
	$(GO) test -tags fleet ./cluster -run '^TestCrashHubs$$' -count=1 -timeout 600m -v
	$(GO) test -tags fleet ./cmd/corpus-git -run '^TestCrashCluster$$' -count=1 -timeout 600m -v

docs: build ## man pages, completions, generated references
	$(BIN) docs --dir dist/docs

browser: ## the pages in a real Chromium, which must be in PATH; screenshots and logs go to dist/browser
	mkdir -p dist/browser
	$(GO) vet -tags browser ./cmd/corpus-git/browser
	$(GO) test -tags browser -count=1 -timeout 10m -artifacts -outputdir $(CURDIR)/dist/browser ./cmd/corpus-git/browser

containers: ## the skeletons and the stories of failing releases in a booted Debian 12, and the drivers of containers; needs root, debootstrap, systemd-nspawn and lxc
	$(GO) test -tags containers -count=1 -timeout 60m -p 1 -v ./container/... ./cmd/corpus-git -run '^TestContainer'

PREFIX  ?= /usr/local
NFPM    ?= $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4

install: build ## the program, its man pages, completions and systemd units below DESTDIR/PREFIX
	$(BIN) docs --dir dist/docs
	install -D -m 755 $(BIN) $(DESTDIR)$(PREFIX)/bin/corpus-git
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/lib/systemd/system
	for page in dist/docs/man/*.1; do gzip -9n <$$page >$(DESTDIR)$(PREFIX)/share/man/man1/$$(basename $$page).gz; done
	install -D -m 644 dist/docs/completions/corpus-git.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/corpus-git
	install -D -m 644 dist/docs/completions/_corpus-git $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_corpus-git
	install -D -m 644 dist/docs/completions/corpus-git.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/corpus-git.fish
	for unit in service socket; do sed 's#/usr/bin/#$(PREFIX)/bin/#' packaging/corpus-git.$$unit >$(DESTDIR)$(PREFIX)/lib/systemd/system/corpus-git.$$unit; done

# The version of a tag without its v; what follows a tag sorts before the next release, and what has none by its date.
packages: export VERSION_OF_PACKAGE = $(shell echo '$(VERSION)' | sed -n '/^v\{0,1\}[0-9][0-9]*\./!{s/^/0~'$$(git log -1 --format=%cd --date=format:%Y%m%d%H%M)'./;s/-/~/g;p;q;};s/^v//;s/-/~/g;p')
packages: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
packages: ## a deb and an rpm in dist/, the same bytes for the same commit
	rm -rf dist/root
	umask 022 && $(MAKE) --no-print-directory install DESTDIR=$(CURDIR)/dist/root PREFIX=/usr
	install -D -m 640 packaging/corpus-git.yaml dist/root/etc/corpus-git/corpus-git.yaml
	install -D -m 644 packaging/corpus-git.logrotate dist/root/etc/logrotate.d/corpus-git
	for file in alerts.yml dashboard.json; do install -D -m 644 packaging/prometheus/$$file dist/root/usr/share/corpus-git/prometheus/$$file || exit 1; done
	find dist/root -exec touch -h -d @$$SOURCE_DATE_EPOCH {} +
	for kind in deb rpm; do VERSION="$$VERSION_OF_PACKAGE" GOARCH=$$($(GO) env GOARCH) $(NFPM) package -f packaging/nfpm.yaml -p $$kind -t dist/ || exit 1; done
	rm -rf dist/root

IMAGE ?= dist/corpus-git_$(VERSION)_$(shell $(GO) env GOARCH).oci.tar
image: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
image: build ## a container image in dist/, the same bytes for the same commit; BASE names a tar of a root file system to lie below
	mkdir -p $(dir $(IMAGE))
	GOOS= GOARCH= $(GO) run ./packaging/image -program $(BIN) -arch $$($(GO) env GOARCH) -version '$(VERSION)' -revision $$(git rev-parse HEAD) -base '$(BASE)' -out $(IMAGE)

corpus: ## look over checkouts of the Salt-based corpus' projects in DIR, and compare with testdata/corpus/projects.tsv
	CORPUS_DIR=$(abspath $(DIR)) $(GO) test -count=1 -v ./cmd/corpus-git -run '^TestCorpus'

clean:
	rm -rf bin dist
