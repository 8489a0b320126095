# make lists the targets.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GOFLAGS_BUILD = -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
export GOFLAGS ?= -buildvcs=false

BIN    = bin/streamdb
DATA   ?= ./data
LISTEN ?= 127.0.0.1:4566
HTTP   ?= 127.0.0.1:4567
KILLS  ?= 300
FUZZTIME ?= 20s

.DEFAULT_GOAL := help
.PHONY: help build static run demo test race e2e slt equality diff backfill kill fuzz bench lint fmt deps clean image

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/streamdb
	go build $(GOFLAGS_BUILD) -o $(BIN) ./cmd/streamdb

static: ## build bin/streamdb as one static binary
	go build -buildvcs=false -trimpath -tags netgo,osusergo -ldflags '-s -w -linkmode external -extldflags "-static" -X main.version=$(VERSION)' -o $(BIN) ./cmd/streamdb

run: build ## build and serve on 127.0.0.1:4566 with data in ./data
	$(BIN) serve --data $(DATA) --listen $(LISTEN) --http $(HTTP)

demo: ## in a second shell while `make run` runs: tables, rows, a view, its answer
	psql "host=127.0.0.1 port=4566 user=root dbname=dev" -v ON_ERROR_STOP=1 -f docs/demo.sql

test: deps ## all tests (under 5 minutes on 2 cores)
	go test ./...

race: ## the packages' tests under the race detector
	go test -race $$(go list ./... | grep -v '/e2e')

e2e: deps ## the end-to-end tests only, as they go
	go test -v ./e2e/...

slt: deps ## the script files only; REWRITE=-rewrite takes PostgreSQL's answers
	go test ./e2e -run 'TestCommon|TestStreamdb' $(REWRITE)

equality: deps ## the random equality test for longer: SEED=n STEPS=n
	go test ./e2e -run TestEquality -v -timeout 0 $(if $(SEED),-seed $(SEED)) -steps $(or $(STEPS),2000)

diff: deps ## random queries and calls of functions against PostgreSQL for longer: SEED=n CASES=n
	go test ./e2e -run 'TestDiff$$|TestDiffFunctions' -functions -v -count=1 -timeout 0 $(if $(SEED),-seed $(SEED)) -cases $(or $(CASES),3000)

backfill: deps ## random scripts of backfills for longer: SEED=n SEEDS=n
	go test ./e2e -run 'TestBackfillRandom' -v -count=1 -timeout 0 $(if $(SEED),-seed $(SEED)) -seeds $(or $(SEEDS),5000)

kill: deps ## KILLS (300) kills -9 of a server under load
	go test ./e2e -run TestKill -v -timeout 0 -kills $(KILLS)

fuzz: ## every fuzz target for FUZZTIME (20s)
	@for pkg in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz'); do \
	    echo "== $$pkg $$f"; go test $$pkg -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) || exit 1; \
	  done; done

bench: deps build ## the figures of the README as a table
	go run ./e2e/bench -bin $(BIN)

lint: ## gofmt, vet, staticcheck
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt would change:"; echo "$$bad"; exit 1; fi
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

deps: ## install what tests need and the machine lacks: PostgreSQL 15, psql, a C compiler
	@.ci/deps

image: ## build the container image
	docker build -t streamdb --build-arg VERSION=$(VERSION) .

clean: ## remove what was built
	rm -rf bin
