# Outpace. `make help` lists the targets; settings can be given on the command line (make CC=clang).
CC       = gcc
CXX      = g++
OPT      = -O3
PREFIX   = /usr/local
BUILD    = build
PKG_CONFIG = pkg-config
include tools/package/cross.mk

# Not for targets that build nothing here, or build through a make of their own.
ifeq ($(filter help clean uninstall,$(MAKECMDGOALS)),)
ifeq ($(MAKELEVEL),0)
# ./setup is quiet and quick if nothing is missing. Only demo and tests install.
SETUP   := $(shell ./setup $(if $(ROOT),$(MACHINE),$(if $(filter demo test%,$(MAKECMDGOALS)),,check)) >&2 || echo failed)
ifeq ($(SETUP),failed)
$(error packages are missing; ./setup printed the fix above)
endif
MAKEFLAGS += -j$(shell nproc)
endif
endif

STD      = -std=c11 -D_GNU_SOURCE
WARN     = -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(WERROR)
# Warnings are errors with the compiler that we use. At -O0 intrinsics are macros, and those warn.
WERROR  := $(if $(filter -O0,$(OPT)),,$(if $(filter 12.%,$(shell $(CC) -dumpfullversion 2>/dev/null)),-Werror))
# No contraction of a*b+c: the same source must give the same bits wherever it's inlined.
EXACT    = -ffp-contract=off
# Enough for a backtrace with lines; what is built to be debugged has all.
DEBUGGER = $(if $(filter -O3,$(OPT)),-g1,-g)
CFLAGS   = $(STD) $(OPT) $(DEBUGGER) $(WARN) $(EXACT) $(SANITIZE) -I. -MMD -MP
LDFLAGS  = $(OPT) $(DEBUGGER) $(SANITIZE)
PACKAGES = jansson libpcre2-8 libutf8proc yaml-0.1 sqlite3 gsl libcrypto zlib libzstd
tool     = $(shell $(CC) -print-prog-name=$(1))
LIBS     = $(shell $(PKG_CONFIG) --libs $(PACKAGES)) $(CUDA_LIBS) -lpthread -lm

# One line per file; `make V=1` shows the whole commands, `make -s` nothing.
say      = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '%-5s %s\n' $(1) $(2);)

ROOMS    = engine simulate datasets results plots harness
SOURCES  = $(filter-out $(CUDA_OUT) $(LANES),$(shell find $(ROOMS) -name '*.c'))
# Those that take longest first: make begins them in this order.
OBJECTS  = $(CUDA_OBJECTS) $(LANE_OBJECTS) $(SOURCES:%.c=$(BUILD)/%.o)
LIBRARY  = $(filter-out $(BUILD)/harness/main.o,$(OBJECTS))
VERSION  = $(BUILD)/harness/cli/version.o
PROGRAM  = $(BUILD)/outpace
outpace: $(PROGRAM) cuda-note
	@$(if $(ROOT),:,cmp -s $(PROGRAM) outpace) || cp --remove-destination $(PROGRAM) outpace

include engine/cuda/cuda.mk
include engine/cpu/kernels/sets.mk

$(PROGRAM): $(OBJECTS) $(BUILD)/parts
	$(call say,LINK,$@)$(CC) $(LDFLAGS) $(OBJECTS) -o $@ $(LIBS)

# A new commit doesn't relink the tests: version.o goes in, but doesn't make the library out of date.
$(BUILD)/liboutpace.a: $(filter-out $(VERSION),$(LIBRARY)) $(BUILD)/parts | $(VERSION)
	@rm -f $@
	@$(call tool,ar) rcs $@ $(LIBRARY)

# The commit: only one file sees it.
COMMIT  := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
$(VERSION): CFLAGS += -DOUTPACE_COMMIT='"$(COMMIT)"'
$(VERSION): $(BUILD)/commit

# Dependencies of objects besides their sources, in files that are written only when their content changes.
$(BUILD)/commit:   CONTENT = $(COMMIT)
$(BUILD)/settings: CONTENT = $(CC) $(OPT) $(SANITIZE)
$(BUILD)/parts:    CONTENT = without $(CUDA_OUT)
build/cuda/toolkit: CONTENT = $(NVCC) $(NVCC_VERSION) $(CUDA_SM)
$(BUILD)/commit $(BUILD)/settings $(BUILD)/parts build/cuda/toolkit: always
	@mkdir -p $(@D)
	@echo '$(CONTENT)' | cmp -s - $@ || echo '$(CONTENT)' >$@

# Files that the assembler includes (.incbin), which -MMD doesn't list.
$(BUILD)/datasets/known.o: datasets/sources.tsv $(wildcard datasets/small/*.jsonl)
$(BUILD)/engine/base/shipped.o: models/sources.tsv
models/sources.tsv: ; # not one of models/% below
$(BUILD)/engine/model/make/synth.o: engine/model/make/tokenizer.json
$(BUILD)/results/open.o $(BUILD)/results/sql.o $(BUILD)/results/rows.o: $(wildcard results/*.sql)
$(BUILD)/plots/figures.o $(BUILD)/plots/caption.o $(BUILD)/plots/page.o $(BUILD)/plots/plot.o $(BUILD)/plots/report.o: $(wildcard plots/figures/* plots/report/*)
$(BUILD)/results/transfer/transfer.o: results/transfer/merge.sql
$(BUILD)/harness/analysis/stored.o: harness/analysis/stored_points.sql harness/analysis/tasks.sql
$(patsubst %.sql,$(BUILD)/%.o,$(wildcard results/transfer/transfer.sql results/transfer/import_records.sql harness/*/*.sql)): $(BUILD)/%.o: %.sql
$(BUILD)/results/published.o $(BUILD)/harness/papers/match.o: $(wildcard results/published/*.tsv)
$(BUILD)/harness/papers/catalogue.o: configs/catalogue.tsv configs/claims.tsv
$(BUILD)/tests/support/prices.o: results/prices.tsv
$(BUILD)/harness/run/slurm.o: harness/run/slurm.sh
$(filter $(BUILD)/harness/commands/%,$(OBJECTS)): $(wildcard harness/commands/lessons.txt harness/commands/shells/* harness/commands/export_*.sql)

# The outer rooms wait for the engine and for files: they needn't be compiled as long as it.
$(foreach r,harness plots results,$(filter $(BUILD)/$r/%,$(OBJECTS))): CFLAGS += $(OPT:-O3=-O2)

$(BUILD)/%.o: %.c Makefile engine/cpu/kernels/sets.mk $(BUILD)/settings
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CFLAGS) -c $< -o $@

# The program that writes the reference family's text from tools/reference/*.txt.
WRITE = $(BUILD)/tools/reference/write
WRITE_OBJECTS = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tools/reference/*.c))
$(WRITE): $(WRITE_OBJECTS) $(filter $(BUILD)/engine/base/%,$(OBJECTS))
	$(call say,LINK,$@)$(CC) $(LDFLAGS) $^ -o $@ $(LIBS)

include tests/tests.mk

include tools/package/package.mk
include tests/gpu/card.mk

lint: $(OBJECTS) $(WRITE_OBJECTS) $(CUDA_C:%.c=$(BUILD)/%.o) $(BUILD)/engine/cuda/none.o
	@./setup lint && tools/lint $(ROOMS) tools/reference tests

demo: outpace models/reference.store
	@tools/demo

reference: outpace $(WRITE)
	@tools/reference-family

# Members of the family that aren't in the tree: one experiment or two use each.
EXTRAS = $(patsubst %,models/reference%,.store -kangaroo-1 -kangaroo-3 -kangaroo-4 -with-head-2 -one-layer-2 -mlp-2)
models/%: | outpace $(WRITE)
	@tools/reference-family $*

experiments: outpace $(EXTRAS)
	@tools/experiments

clean:
	rm -rf build outpace outpace-debug outpace-portable*

help:
	@echo "make            build ./outpace; ./setup installs what it needs, demo and test run that first"
	@echo "make demo       see it work: a text step by step, S and speedup of nine methods, here and priced on an H100; MODEL=smollm2: of a model that was fetched"
	@echo "make reference  rebuild the reference family: text, tokenizer, training; continues after a stop"
	@echo "make models/NAME make one member of the family (models/README.md)"
	@echo "make experiments the papers' tables and figures at smoke scale, into results/smoke; continues after a stop"
	@echo "make test       all tests; test-long runs the longer ones too"
	@echo "make test-real  published models that were fetched (models/fetch): greedy ids of transformers, every method; part of test-long"
	@echo "make soak       sweeps for SOAK=45 minutes: memory, descriptors, files and stores must not grow; part of test-long"
	@echo "make debug      ./outpace-debug with AddressSanitizer and UBSan; test-debug runs the tests on it"
	@echo "make fuzz       fuzz every parser for FUZZ_SECONDS=60 (clang, libFuzzer); 900 in test-long"
	@echo "make lint       format, headers alone, layers, banned calls, file-scope state, limits (tools/measure), cppcheck"
	@echo "make portable   ./outpace-portable, which needs only a C library of 2018 (glibc $(GLIBC)) or newer"
	@echo "make wheel      a Python wheel of it, for pip and uv, in build/; both cross-compile with MACHINE=aarch64"
	@echo "make card       build/card.tar.gz: what tools/card checks and measures on a GPU, on this machine or another (NVCC=/path/to/nvcc)"
	@echo "make man        the manual page, build/outpace.1"
	@echo "make install    PREFIX=$(PREFIX); uninstall removes exactly what it put there"
	@echo "make clean      remove everything that was built"
	@echo "settings        V=1 (whole commands) CC=$(CC) OPT=$(OPT) PREFIX=$(PREFIX) BUILD=$(BUILD)"

-include $(patsubst %.o,%.d,$(OBJECTS) $(WRITE_OBJECTS) $(TESTS:=.o) $(SHARED) $(FUZZERS))
.PHONY: always outpace tests test test-long test-real soak debug test-debug fuzz lint demo reference experiments clean help
.SECONDARY:
