# The CUDA engine, compiled twice: by nvcc, if there is one, for GPUs; and by the C++ compiler for the tests, which run
# every kernel on the CPU (tests/simt). Part of the Makefile.
# `make NVCC=/path/to/nvcc` chooses the toolkit, `make NVCC=` builds for the CPU. A build by CUDA 12 runs with older
# drivers than one by 13 (CUDA_DRIVER).
ifeq ($(origin NVCC),undefined)
NVCC    := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
endif
NVCC_FOUND := $(NVCC)
NVCC_VERSION := $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
# A toolkit older than 12.0 doesn't support 9.0: it's ignored, with a line.
ifneq ($(filter 1.% 2.% 3.% 4.% 5.% 6.% 7.% 8.% 9.% 10.% 11.%,$(NVCC_VERSION)),)
NVCC_OLD := $(NVCC_VERSION)
override NVCC :=
endif
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(realpath $(shell command -v $(NVCC))))
CUDA_DRIVER = $(if $(filter 12.%,$(NVCC_VERSION)),525,580)

CUDA_C   = $(filter-out engine/cuda/none.c,$(wildcard engine/cuda/*.c engine/cuda/kernels/*.c))
CUDA_CU  = $(wildcard engine/cuda/kernels/*.cu)
ifeq ($(NVCC),)
CUDA_OUT = $(CUDA_C)
else
CUDA_OUT = engine/cuda/none.c
# The same for every BUILD: sanitizers do not change GPU code.
CUDA_OBJECTS = $(addprefix build/cuda/engine/cuda/kernels/,product.o $(filter-out product.o,$(notdir $(CUDA_CU:.cu=.o))))
# The folders of NVIDIA's own packages, conda's and pip's.
CUDA_LIBS = $(addprefix -L,$(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib $(CUDA_HOME)/targets/*/lib)) -lcudart_static -lsupc++ -static-libgcc -ldl -lrt
endif

# 9.0a has wgmma, which no later card has: files that use it are compiled for that as well. Later cards take the PTX for
# 9.0, which has early launches. No contraction of a*b+c (see EXACT). Spills are errors with the toolkit that this is
# written with. All architectures at once.
# Machine code takes time that a machine without a GPU need not spend: there the driver makes it of the PTX, should
# the program ever meet one. `make CUDA_SM="80 90 120"` has machine code for these.
CUDA_SM   := $(if $(wildcard /dev/nvidia0)$(filter portable wheel test-long,$(MAKECMDGOALS)),80 90)
CUDA_GROUPS := $(shell grep -liE 'warpgroups?\b' $(CUDA_CU))
CUDA_CODES = $(foreach n,$(filter 8%,$(CUDA_SM)),80-sm_$n) $(if $(filter 80,$(CUDA_SM)),,80-compute_80) \
    $(if $(filter $<,$(CUDA_GROUPS)),90a-$(if $(filter 90,$(CUDA_SM)),sm,compute)_90a,$(if $(filter 90,$(CUDA_SM)),90-sm_90)) \
    $(foreach n,$(filter 1%,$(CUDA_SM)),90-sm_$n) 90-compute_90
CUDA_PTX  = -gencode arch=compute_90,code=compute_90
CUDA_ARCH = $(foreach c,$(CUDA_CODES),-gencode arch=compute_$(subst -,$(,)code=,$c))
# What tests add to it is run as PTX only.
build/cuda/tests/%.o: CUDA_ARCH = $(CUDA_PTX)
build/cuda/tests/ptx/planted_groups.o build/cuda/tests/ptx/planted_clusters.o build/cuda/tests/gpu/probe_multiply.o: CUDA_ARCH = -gencode arch=compute_90a,code=compute_90a
# One file knows them all.
build/cuda/engine/cuda/kernels/runtime.o: NVCCFLAGS += -DCUDA_CODES='"$(foreach c,$(CUDA_CODES),$(lastword $(subst -, ,$c)))"'
NVCCFLAGS = -std=c++17 -O3 -t 3 --fmad=false -Xcompiler -Wall,-Wextra $(if $(filter 13.0,$(NVCC_VERSION)),-Xptxas --warn-on-spills$(,)-Werror) \
    $(if $(WERROR),-Werror all-warnings) -I. -MMD -MP
, := ,
# nvcc's PTX is kept for the machine that runs it in the tests (tests/ptx). That of a source that is gone is removed.
PTX_GONE := $(filter-out $(foreach f,planted planted_groups planted_clusters $(notdir $(basename $(CUDA_CU) $(wildcard tests/gpu/*.cu))),build/ptx/$(f).%),$(wildcard build/ptx/*.ptx))
build/cuda/%.o: %.cu engine/cuda/cuda.mk build/cuda/toolkit
	@mkdir -p $(@D) build/ptx build/cuda/$*.kept && rm -f $(PTX_GONE) build/ptx/$(*F).compute_*.ptx
	$(call say,NVCC,$<)$(NVCC) $(NVCCFLAGS) --keep --keep-dir build/cuda/$*.kept $(CUDA_ARCH) -c $< -o $@
	@cd build/cuda/$*.kept && { [ ! -e $(*F).ptx ] || mv $(*F).ptx $(*F).$(lastword $(subst =, ,$(CUDA_ARCH))).ptx; } # of a single target
	@mv build/cuda/$*.kept/$(*F).compute_*.ptx build/ptx/ && rm -rf build/cuda/$*.kept

# The same sources compiled for the host; undefined behaviour that traps on a device traps here too.
SIMTFLAGS = -std=c++17 -O2 -g -Wall -Wextra -Wshadow -Wno-unused-function -Wno-unknown-pragmas $(WERROR) $(EXACT) \
    -fsanitize=bounds,alignment -fsanitize-undefined-trap-on-error $(filter-out -fno-sanitize-recover=undefined,$(SANITIZE)) -I. -MMD -MP
SIMT     = $(patsubst %,$(BUILD)/simt/%.o,$(basename $(wildcard tests/simt/*.cpp) $(filter-out %/runtime.cu,$(CUDA_CU)))) \
    $(CUDA_C:%.c=$(BUILD)/%.o)
$(BUILD)/simt/%.o: %.cu engine/cuda/cuda.mk $(BUILD)/settings
	@mkdir -p $(@D)
	$(call say,C++,$<)$(CXX) -x c++ -include tests/simt/simt.hpp $(SIMTFLAGS) -c $< -o $@
$(BUILD)/simt/%.o: %.cpp engine/cuda/cuda.mk $(BUILD)/settings
	@mkdir -p $(@D)
	$(call say,C++,$<)$(CXX) $(SIMTFLAGS) -c $< -o $@

SIMT_TESTS = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/simt/*_test.c tests/engine/cuda/*_test.c))
$(SIMT_TESTS): $(SIMT)
$(SIMT_TESTS): CUDA_LIBS = -lstdc++
$(BUILD)/tests/simt/simt_test: $(BUILD)/simt/tests/simt/planted.o

# The whole program on that machine: `--device cuda` without a GPU, slowly. The simulated cuBLASLt uses its streams.
$(BUILD)/simt/outpace: $(BUILD)/harness/main.o $(SIMT) $(BUILD)/liboutpace.a
	$(call say,LINK,$@)$(CC) $(LDFLAGS) -rdynamic $^ -o $@ $(LIBS)
$(BUILD)/simt/outpace: CUDA_LIBS = -lstdc++

# The program opens these simulated libraries of cuBLASLt and NVML at run time.
$(BUILD)/simt/libcublasLt.so: tests/simt/cublaslt.c tests/simt/cublaslt.h engine/cuda/cublas.h $(BUILD)/settings
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -fPIC -shared $< engine/base/numbers.c -o $@
$(BUILD)/simt/libnvidia-ml.so: tests/simt/nvml.c $(BUILD)/settings
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -fPIC -shared $< -o $@
$(BUILD)/tests/engine/cuda/nvml_test: $(BUILD)/simt/libnvidia-ml.so
$(BUILD)/tests/engine/cuda/fast_test: LDFLAGS += -rdynamic
$(BUILD)/tests/engine/cuda/fast_test: $(BUILD)/simt/libcublasLt.so
$(BUILD)/tests/engine/cuda/fast_test.o: build/cuda/toolkit
$(BUILD)/tests/engine/cuda/fast_test.o: CFLAGS += $(if $(CUDA_HOME),-isystem $(CUDA_HOME)/include)

# Tests of the engine on the machine that runs nvcc's PTX and links nvcc's own host objects, if there is an nvcc. Where
# not all is tried: one for each kind of kernel.
PTX_SHORT = attention norm norm_heads open parts product quads top wide
PTX_LONG = batch codes draw drafts exact golden hidden long methods reference sampling
PTX_TESTS = $(patsubst %,$(BUILD)/ptx/%_test,$(PTX_SHORT) $(if $(filter test-long,$(MAKECMDGOALS)),$(PTX_LONG)))
PTX      = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %_test.c,$(wildcard tests/ptx/*.c)))
$(PTX): build/cuda/toolkit
$(PTX): CFLAGS += -march=native -fno-strict-aliasing -isystem $(CUDA_HOME)/include -DPTX_FOLDER='"build/ptx"'
PTX_LIBS = $(shell $(PKG_CONFIG) --libs $(PACKAGES)) -lsupc++ -lpthread -lm
PTX_LINK = $(CC) $(LDFLAGS) $(GOLD) $(filter %.o,$^) $(filter %.a,$^) -o $@ -lcmocka $(PTX_LIBS)
$(BUILD)/ptx/%_test: $(BUILD)/tests/engine/cuda/%_test.o $(PTX) $(CUDA_C:%.c=$(BUILD)/%.o) $(CUDA_OBJECTS) $(BUILD)/libtests.a $(BUILD)/liboutpace.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(PTX_LINK)
$(BUILD)/tests/ptx/planted_test: $(BUILD)/tests/ptx/planted_test.o $(PTX) build/cuda/tests/ptx/planted.o build/cuda/tests/ptx/planted_groups.o build/cuda/tests/ptx/planted_clusters.o \
    build/cuda/tests/gpu/probe_multiply.o build/cuda/engine/cuda/kernels/runtime.o \
    $(BUILD)/libtests.a $(BUILD)/liboutpace.a
	$(call say,LINK,$@)$(PTX_LINK)
PTX_WHOLE = $(filter-out %/planted_test,$(patsubst %.c,$(BUILD)/%,$(wildcard tests/ptx/*_test.c)))
$(PTX_WHOLE): $(BUILD)/tests/ptx/%: $(BUILD)/tests/ptx/%.o $(PTX) $(CUDA_C:%.c=$(BUILD)/%.o) $(CUDA_OBJECTS) $(BUILD)/libtests.a $(BUILD)/liboutpace.a
	$(call say,LINK,$@)$(PTX_LINK)
ifneq ($(NVCC),)
tests: $(PTX_TESTS)
endif

cuda-note:
	@[ -n "$(NVCC)" ] || echo "CUDA toolkit: $(if $(NVCC_OLD),$(NVCC_FOUND) is $(NVCC_OLD) and 12.0 is the oldest that will do,none found); building for the CPU"
.PHONY: cuda-note
-include $(CUDA_OBJECTS:.o=.d) build/cuda/tests/ptx/planted.d build/cuda/tests/ptx/planted_groups.d build/cuda/tests/ptx/planted_clusters.d $(PTX:.o=.d) $(SIMT:.o=.d)
