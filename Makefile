# Copyright The Rollcall Authors
# SPDX-License-Identifier: Apache-2.0

# Needs nothing but Go, GNU make, git and a module proxy.

GO ?= go
PKG ?= ./...
RUN ?=
BENCH ?= .
CLUSTERS ?= 100
FROM ?=
KEEP ?=
INSTALL_DIR ?=
BASE ?=
PUBLISH ?=

# The race detector needs cgo, which Go switches off where there is no C compiler.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
TEST := $(GO) test $(RACE) -timeout 15m
CONTROLPLANE := $(GO) -C hack/controlplane run -mod=readonly -buildvcs=false .
TOOL := $(GO) tool -modfile=hack/tools/go.mod
# Modules beside the root one: those with packages, and those that are checked. To tidy
# hack/release, which is only for releases, takes 2.5 GB of modules.
CODE_MODULES := hack/controlplane compat/multicluster-runtime test/compat
MODULES := $(CODE_MODULES) hack/tools hack/tools/apidiff

main = $(patsubst %/main.go,./%,$(wildcard $(1)))
COMMANDS := $(call main,cmd/*/main.go plugins/*/cmd/*/main.go)
EXAMPLES := $(call main,examples/*/main.go)

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:

##@ Use

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: quickstart
quickstart: ## Show Rollcall at work on real control planes. FROM=hub|kubeconfig|file|cluster-api. KEEP=1 leaves them running.
	@test -x bin/quickstart || echo 'building hack/quickstart (a minute or two the first time)'
	@$(GO) build -o bin/ ./hack/quickstart
	@exec env FROM='$(FROM)' KEEP='$(KEEP)' bin/quickstart

.PHONY: build
build: ## Build the plugins and the examples into bin/.
	@$(if $(COMMANDS)$(EXAMPLES),$(GO) build -trimpath -ldflags '-s -w' -o bin/ $(COMMANDS) $(EXAMPLES),echo 'nothing to build yet')

.PHONY: install
install: ## Install the plugins into GOBIN, or into INSTALL_DIR.
	@$(if $(COMMANDS),,echo 'nothing to install yet'; exit;) \
	$(if $(INSTALL_DIR),mkdir -p '$(INSTALL_DIR)' && GOBIN=$$(cd '$(INSTALL_DIR)' && pwd) && export GOBIN || exit;) \
	$(GO) install -trimpath -ldflags '-s -w' $(COMMANDS) && \
	$(GO) list -f 'installed {{.Target}}' $(COMMANDS)

##@ Test

.PHONY: controlplane
controlplane: ## Prepare kube-apiserver, etcd and kubectl for tests, print their folder. Minutes the first time.
	@$(CONTROLPLANE)

.PHONY: test
test: ## Run the tests. PKG=./pkg/... picks packages, RUN=Name picks tests. Needs what controlplane prepares.
	@$(if $(RACE),,echo 'no C compiler: testing without the race detector')
	@assets=$$($(CONTROLPLANE)) && \
	KUBEBUILDER_ASSETS=$$assets $(TEST) $(if $(RUN),-run '$(RUN)') $(PKG)
ifeq ($(PKG)$(RUN),./...)
	@for module in $(CODE_MODULES); do (cd $$module && $(TEST) ./...) || exit; done
endif

.PHONY: test-kind
test-kind: ## Test providers/kind on a Docker engine; as root, one is started. INSTALL_DOCKER=1 installs it.
	@assets=$$($(CONTROLPLANE)) && \
	$(GO) test $(RACE) -c -o bin/kind.test ./test/kind && cd test/kind && \
	KUBEBUILDER_ASSETS=$$assets ROLLCALL_TEST_KIND=1 ../../hack/with-docker.sh ../../bin/kind.test -test.v -test.timeout 10m

.PHONY: bench
bench: ## Compare with bare controller-runtime and client-go, in about 14 minutes. BENCH=Fleet PKG=./test/bench picks one.
ifeq ($(PKG),./...)
	@$(GO) test -timeout 60m -run '^$$' -bench 'AgainstBare/$(BENCH)' -benchtime 1x ./test/bench -clusters $(CLUSTERS) -out '$(CURDIR)/bin/bench.txt'
ifeq ($(BENCH),.)
	@for name in Apart Fleet Clients Credentials; do $(GO) test -timeout 60m -run '^$$' -bench "^Benchmark$$name\$$" -benchtime 1x ./test/bench || exit; done
endif
else
	@assets=$$($(CONTROLPLANE)) && \
	KUBEBUILDER_ASSETS=$$assets $(GO) test -timeout 60m -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)
endif

##@ Verify

.PHONY: verify
verify: verify-format verify-tidy verify-generated verify-docs lint ## Check everything that needs no test run.
	@echo 'verify: all good'

.PHONY: verify-format
verify-format: ## Check that all Go files are formatted.
	@files=$$(git ls-files -co --exclude-standard '*.go' | grep -v /testdata/ | xargs "$$($(GO) env GOROOT)/bin/gofmt" -l) && \
	if [ -n "$$files" ]; then echo 'not formatted, see make format:'; echo "$$files"; exit 1; fi

.PHONY: verify-tidy
verify-tidy: ## Check that go.mod and go.sum of all modules are tidy.
	@for module in . $(MODULES); do \
		(cd $$module && $(GO) mod tidy -diff) || { echo "$$module: not tidy, see make tidy"; exit 1; }; done

.PHONY: verify-generated
verify-generated: ## Check that generated files are up to date. Leaves them so.
	@sums() { git ls-files -co --exclude-standard | sort | while read -r f; do [ ! -f "$$f" ] || cksum "$$f"; done; }; \
	before=$$(sums) && $(GO) generate ./... && after=$$(sums) && \
	if [ "$$before" != "$$after" ]; then echo 'generated files were out of date; commit what changed:'; git status --short; exit 1; fi

.PHONY: verify-docs
verify-docs: ## Check the links in the docs, and that they name each dependency.
	@$(GO) run ./hack/doclinks
	@$(GO) run ./hack/depdocs

.PHONY: lint
lint: ## Run golangci-lint on all modules. Builds it first, in a minute or two.
	@$(TOOL) golangci-lint run
	@lint=$$($(TOOL) -n golangci-lint) && \
	for module in $(CODE_MODULES); do (cd $$module && "$$lint" run) || exit; done

.PHONY: vuln
vuln: ## Look for known vulnerabilities that our code reaches. Needs vuln.go.dev.
	@$(TOOL) govulncheck ./...

.PHONY: api-diff
api-diff: ## Show how the exported API differs from BASE, a tag or commit.
	@$(if $(BASE),,echo 'usage: make api-diff BASE=v0.1.0' >&2; exit 2;) \
	apidiff=$$($(GO) tool -modfile=hack/tools/apidiff/go.mod -n apidiff) && tmp=$$(mktemp -d) && trap 'git worktree remove --force "$$tmp/base"; rm -rf "$$tmp"' EXIT && \
	git worktree add -q --detach "$$tmp/base" '$(BASE)' && module=$$($(GO) list -m) && \
	(cd "$$tmp/base" && "$$apidiff" -m -w "$$tmp/base.api" "$$module") && \
	"$$apidiff" -m -w "$$tmp/head.api" "$$module" && \
	"$$apidiff" -m "$$tmp/base.api" "$$tmp/head.api"

##@ Maintain

.PHONY: format
format: ## Format all Go files and sort their imports.
	@$(TOOL) golangci-lint fmt
	@lint=$$($(TOOL) -n golangci-lint) && \
	for module in $(CODE_MODULES); do (cd $$module && "$$lint" fmt) || exit; done

.PHONY: generate
generate: ## Bring generated files up to date.
	@$(GO) generate ./...

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum of all modules.
	@for module in . $(MODULES) hack/release; do (cd $$module && $(GO) mod tidy) || exit; done

.PHONY: release
release: ## Build archives, bills of materials and digests into dist/. PUBLISH=1 publishes those of a tag, with GITHUB_TOKEN.
	@$(GO) build -o bin/sbom ./hack/sbom
	@tag=$$(git tag --points-at HEAD --list 'v[0-9]*' --sort=-version:refname | head -n 1) && \
	if [ '$(PUBLISH)' = 1 ]; then test -n "$$tag" || { echo 'make release: no tag v… points to this commit' >&2; exit 2; }; \
	elif [ -n "$$tag" ]; then set -- --skip=publish; \
	else set -- --skip=publish --snapshot; fi && \
	GORELEASER_CURRENT_TAG=$$tag $(GO) tool -modfile=hack/release/go.mod goreleaser release --clean "$$@"

.PHONY: clean
clean: ## Remove bin/ and dist/. Caches outside of the tree stay.
	@rm -rf bin dist
