# How tests and fuzzers are built and run; the Makefile includes this.

# tests/run runs exactly the programs that have a source.
TESTS    = $(patsubst %.c,$(BUILD)/%,$(shell find tests -name '*_test.c' $(if $(NVCC),,! -path 'tests/ptx/*')))
SHARED   = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
FUZZERS  = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/fuzz/*_fuzz.c))

# An archive, so that a program takes only the objects it uses: tests/support/fault.c links only with its wraps.
$(BUILD)/libtests.a: $(SHARED)
	@rm -f $@
	@$(call tool,ar) rcs $@ $^

# Hundreds of programs are linked: by gold where there is one, in half the time that the usual linker takes.
# Another machine's root it doesn't follow.
GOLD     = $(eval GOLD := $(if $(ROOT),,$(shell echo 'int main(void) { return 0; }' | \
    $(CC) -fuse-ld=gold -x c - -o /dev/null 2>/dev/null && echo -fuse-ld=gold)))$(GOLD)
LINK_TEST = $(call say,LINK,$@)$(CC) $(LDFLAGS) $(GOLD) $(filter %.o,$^) $(filter %.a,$^) -o $@ -lcmocka $(LIBS)
$(BUILD)/tests/%_test: $(BUILD)/tests/%_test.o $(BUILD)/libtests.a $(BUILD)/liboutpace.a | $(if $(ROOT),,build/golden)
	$(LINK_TEST)

# The golden models as tests open them.
build/golden: $(wildcard tests/fixtures/golden/*/*) | $(BUILD)/tests/golden
	@rm -rf $@ $@.part
	@$(BUILD)/tests/golden unpack tests/fixtures/golden $@.part && mv $@.part $@
$(BUILD)/tests/golden: $(BUILD)/tests/golden.o $(BUILD)/libtests.a $(BUILD)/liboutpace.a
	$(LINK_TEST)
-include $(BUILD)/tests/golden.d

# A test's own code runs for moments: it's compiled more often than it's worth optimizing.
$(BUILD)/tests/%_test.o: CFLAGS += $(if $(filter -O3,$(OPT)),-O1)

$(BUILD)/tests/support/plot_store.o: tests/fixtures/plots/computed.json
$(BUILD)/tests/plots/report_test.o: plots/report/page.css
$(BUILD)/tests/plots/report_long_test.o: tests/plots/report_reader.js

# The reference family's grammars aren't part of the library.
$(BUILD)/tests/tools/reference/grammar_test $(BUILD)/tests/tools/reference/lists_test: $(filter-out %/write.o,$(WRITE_OBJECTS))
$(BUILD)/tests/tools/reference/write_test: $(WRITE)

# The whole program on a simulated machine with several GPUs.
$(addprefix $(BUILD)/tests/engine/cuda/,batch_run_test doctor_test fault_test ranks_test): $(BUILD)/simt/outpace

# Programs that make allocations or system calls fail link them through tests/support/fault.c.
WRAPPED  = malloc calloc realloc free open read write fsync close rename
$(BUILD)/tests/%_fault_test: LDFLAGS += $(WRAPPED:%=-Wl,--wrap=%)

# libFuzzer finds an entry by one name; corpus_test links them all, each under its file's name.
$(BUILD)/tests/fuzz/%_fuzz.o: CFLAGS += $(if $(FUZZING),,-DLLVMFuzzerTestOneInput=$(basename $(@F)))
$(BUILD)/tests/fuzz/corpus_test: $(FUZZERS)
PARSERS  = $(filter $(patsubst %,$(BUILD)/%/%,engine/base engine/core engine/model engine/text engine/decode simulate datasets results \
    harness/config),$(OBJECTS)) $(patsubst %,$(BUILD)/harness/inputs/%.o,conversation prompts) $(BUILD)/engine/options.o $(BUILD)/harness/train/config.o \
    $(BUILD)/harness/replay/texts.o
$(BUILD)/%_fuzz: $(BUILD)/tests/fuzz/%_fuzz.o $(PARSERS)
	$(call say,LINK,$@)$(CC) $(LDFLAGS) -fsanitize=fuzzer $^ -o $@ $(LIBS)

tests: $(TESTS) $(FUZZERS)

test: outpace tests
	@PTX_SHORT='$(PTX_SHORT)' OUTPACE=./outpace tests/run $(BUILD) test

test-long: outpace tests
	@OUTPACE=./outpace tests/run $(BUILD) long && ./setup fuzz && tools/fuzz $(or $(FUZZ_SECONDS),900)

# Sweeps for SOAK minutes: nothing may grow.
soak: outpace $(BUILD)/tests/harness/soak_long_test
	@SOAK=$(SOAK) OUTPACE=./outpace $(BUILD)/tests/harness/soak_long_test

# The published models that were fetched: transformers' greedy ids, and every method. ONLY='*gemma*': of one model.
test-real: outpace $(BUILD)/tests/harness/real_long_test
	@OUTPACE=./outpace $(BUILD)/tests/harness/real_long_test $(if $(ONLY),'$(ONLY)')

# AddressSanitizer and UndefinedBehaviorSanitizer; objects of their own.
DEBUG = BUILD=build/debug OPT=-O1 SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=undefined'
debug:
	@$(MAKE) --no-print-directory $(DEBUG) build/debug/outpace
	@cp --remove-destination build/debug/outpace outpace-debug && echo "built ./outpace-debug"

test-debug: debug
	@$(MAKE) --no-print-directory $(DEBUG) tests
	@PTX_SHORT='$(PTX_SHORT)' OUTPACE=./outpace-debug tests/run build/debug test

fuzz:
	@./setup fuzz && tools/fuzz $(FUZZ_SECONDS)
