# `make card`: all that a quarter of an hour with a GPU needs, built where there may be none, for one architecture
# (CARD_ARCH=89: another): the program, and one more that has the kernels' tests, the probe and the lab (card.c). tools/card
# runs them. All but the C library and cmocka is linked in; cmocka is in the same folder. Part of the Makefile.
CARD_ARCH = 90a
CARD_MOST = 20971520
CARD     = build/card/$(CARD_ARCH)
CARD_SUITES = attention batch batch_methods chain codes draw drafts exact golden long methods norm norm_heads product quads reference sampling top wide cpu_exact cpu_ops
CARD_CU  = $(wildcard tests/gpu/*.cu)
CARD_PARTS = $(CARD_SUITES:%=$(BUILD)/card/%_test.o) $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/real.c %_test.c,$(wildcard tests/gpu/*.c)))
$(CARD)/%.o: %.cu engine/cuda/cuda.mk build/cuda/toolkit
	@mkdir -p $(@D)
	$(call say,NVCC,$<)$(NVCC) $(NVCCFLAGS) -gencode arch=compute_$(CARD_ARCH)$(,)code=sm_$(CARD_ARCH) -c $< -o $@
$(CARD)/engine/cuda/kernels/runtime.o: NVCCFLAGS += -DCUDA_CODES='"sm_$(CARD_ARCH)"'
$(BUILD)/tests/gpu/card.o: CFLAGS += -DCARD_SUITES='$(foreach s,$(CARD_SUITES),SUITE($s))'
$(BUILD)/card/%_test.o: $(BUILD)/tests/engine/cuda/%_test.o
	@mkdir -p $(@D)
	@$(call tool,objcopy) --redefine-sym main=$*_test $< $@
$(BUILD)/card/cpu_exact_test.o: $(BUILD)/tests/engine/cpu/exact_test.o
$(BUILD)/card/cpu_ops_test.o: $(BUILD)/tests/engine/cpu/kernels/ops_test.o
$(BUILD)/card/cpu_%_test.o:
	@mkdir -p $(@D)
	@$(call tool,objcopy) --redefine-sym main=cpu_$*_test $< $@
$(CARD)/outpace: $(filter-out $(CUDA_OBJECTS),$(OBJECTS)) $(CUDA_CU:%.cu=$(CARD)/%.o) $(BUILD)/tools/package/compat.o $(BUILD)/parts $(STUBS)/libc.so
	$(call say,LINK,$@)$(CC) $(LDFLAGS) -s $(sort $(filter %.o,$^)) -o $@ $(PORTABLE_LIBS)
$(CARD)/card: $(CARD_PARTS) $(CUDA_CU:%.cu=$(CARD)/%.o) $(CARD_CU:%.cu=$(CARD)/%.o) $(BUILD)/tests/gpu/real.o $(BUILD)/tools/package/compat.o \
    $(BUILD)/libtests.a $(BUILD)/liboutpace.a $(STUBS)/libc.so
	@cp -L $$($(CC) -print-file-name=libcmocka.so.0) $(@D)/
	$(call say,LINK,$@)$(CC) $(LDFLAGS) -s $(filter %.o,$^) $(filter %.a,$^) -o $@ -Wl,-rpath,'$$ORIGIN' -lcmocka $(PORTABLE_LIBS)
card: $(CARD)/card $(CARD)/outpace
	@tar -C $(CARD) -czf build/card.tar.gz card outpace libcmocka.so.0
	@bytes=$$(stat -c %s build/card.tar.gz) && \
	    echo "build/card.tar.gz: $$bytes bytes, for sm_$(CARD_ARCH) and NVIDIA drivers from $(CUDA_DRIVER) on; there: tools/card" && \
	    { [ $$bytes -le $(CARD_MOST) ] || { echo "card: more than $(CARD_MOST) bytes don't travel" >&2; exit 1; }; }
.PHONY: card

# The same program on the simulated card, and on the machine that runs nvcc's PTX.
$(BUILD)/simt/card: $(CARD_PARTS) $(CARD_CU:%.cu=$(BUILD)/simt/%.o) $(SIMT) $(BUILD)/libtests.a $(BUILD)/liboutpace.a
	$(call say,LINK,$@)$(CC) $(LDFLAGS) $(GOLD) $(filter %.o,$^) $(filter %.a,$^) -o $@ -lcmocka $(LIBS)
$(BUILD)/simt/card: CUDA_LIBS = -lstdc++
$(BUILD)/ptx/card: $(CARD_PARTS) $(CARD_CU:%.cu=build/cuda/%.o) $(PTX) $(CUDA_C:%.c=$(BUILD)/%.o) $(CUDA_OBJECTS) $(BUILD)/libtests.a $(BUILD)/liboutpace.a
	$(call say,LINK,$@)$(PTX_LINK)
-include $(patsubst %.cu,$(CARD)/%.d,$(CUDA_CU) $(CARD_CU)) $(CARD_CU:%.cu=build/cuda/%.d) $(CARD_CU:%.cu=$(BUILD)/simt/%.d) $(BUILD)/tests/gpu/real.d
$(BUILD)/tests/gpu/card_test: $(SIMT) $(BUILD)/simt/card $(if $(NVCC),$(BUILD)/ptx/card)
$(BUILD)/tests/gpu/card_test: CUDA_LIBS = -lstdc++
$(BUILD)/tests/tools/card_test: $(BUILD)/simt/card $(BUILD)/simt/outpace
