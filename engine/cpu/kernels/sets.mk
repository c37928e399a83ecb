# Kernel sets for more than the baseline x86-64 or 64-bit Arm; chosen at run time. The Makefile includes this.
#
# ops_lanes.c (the engine) and kernels_lanes.c (training) are compiled once for each set, with its flags and its name in SET, to
# ops_avx2.o and the like.
TARGET  := $(shell $(CC) -dumpmachine 2>/dev/null)
SETS    := portable $(if $(filter x86_64%,$(TARGET)),avx2 avx_vnni avx512 avx512_vnni avx512_bf16) $(if $(filter aarch64%,$(TARGET)),neon)
LANES    = engine/cpu/kernels/ops_lanes.c engine/train/kernels/kernels_lanes.c
OPS     := $(patsubst %,$(BUILD)/engine/cpu/kernels/ops_%.o,$(SETS) $(if $(filter aarch64%,$(TARGET)),neon_bf16))
TRAIN   := $(patsubst %,$(BUILD)/engine/train/kernels/kernels_%.o,$(filter-out avx_vnni avx512 avx512_vnni,$(SETS)))
LANE_OBJECTS := $(OPS) $(TRAIN)

SET      = $(BUILD)/engine/cpu/kernels/ops_$(1).o $(BUILD)/engine/train/kernels/kernels_$(1).o
ifneq ($(filter x86_64%,$(TARGET)),)
ifeq ($(filter help clean,$(MAKECMDGOALS))$(shell $(CC) -mamx-bf16 -E -xc /dev/null >/dev/null 2>&1 && echo new),)
$(error $(CC) does not know the newest kernels' flags: take gcc 11 or clang 12, or a newer one (make CC=...))
endif
AVX512   = -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mprefer-vector-width=512
$(call SET,avx2): CFLAGS += -mavx2 -mfma -mf16c
$(call SET,avx_vnni): CFLAGS += -mavx2 -mfma -mf16c -mavxvnni
$(call SET,avx512) $(BUILD)/tests/support/transpose_avx512.o: CFLAGS += $(AVX512)
$(call SET,avx512_vnni): CFLAGS += $(AVX512) -mavx512vnni
$(call SET,avx512_bf16): CFLAGS += $(AVX512) -mavx512bf16 -mavx512vnni
$(BUILD)/engine/train/kernels/kernels_avx512_bf16.o: CFLAGS += -DPRODUCT_BF16
$(BUILD)/engine/cpu/kernels/ops_amx.o $(BUILD)/engine/cpu/kernels/attend_tiles.o $(BUILD)/tests/support/tile_product_real.o: CFLAGS += $(AVX512) -mavx512bf16 -mavx512vnni -mamx-tile -mamx-bf16
endif
# For Arm, gcc 12.2 (Debian 12's) crashes on loops that take a maximum with fmax.
ifneq ($(filter aarch64%,$(TARGET)),)
CFLAGS  += $(if $(filter 12.0.% 12.1.% 12.2.%,$(shell $(CC) -dumpfullversion 2>/dev/null)),-fno-builtin-fmax -fno-builtin-fmaxf)
endif
$(call SET,portable): CFLAGS += -DLANES_PLAIN
$(BUILD)/engine/cpu/kernels/ops_neon_bf16.o: CFLAGS += -march=armv8.2-a+bf16

$(OPS): $(BUILD)/engine/cpu/kernels/ops_%.o: engine/cpu/kernels/ops_lanes.c
$(TRAIN): $(BUILD)/engine/train/kernels/kernels_%.o: engine/train/kernels/kernels_lanes.c
$(LANE_OBJECTS): Makefile engine/cpu/kernels/sets.mk $(BUILD)/settings
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CFLAGS) -DSET=$(patsubst ops_%,%,$(patsubst kernels_%,%,$(basename $(@F)))) -c $(filter %_lanes.c,$^) -o $@

# A .d that is older than ops_lanes.c names its set's own source, which is gone: nothing to make.
$(LANE_OBJECTS:$(BUILD)/%.o=%.c): ;
