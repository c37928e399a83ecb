# `make portable MACHINE=aarch64` and `make wheel MACHINE=aarch64`, on another machine than that: Debian's cross compiler, libraries of
# the other machine's Debian (tools/package/root), and an emulator for the few commands whose output is packed. Part of the Makefile.
HERE    := $(shell uname -m)
MACHINE  = $(HERE)
ifneq ($(MACHINE),$(HERE))
ifneq ($(MACHINE),aarch64)
$(error MACHINE is $(HERE) or aarch64, not '$(MACHINE)')
endif
BUILD    = build/$(MACHINE)
ROOT     = $(BUILD)/root
CC       = $(MACHINE)-linux-gnu-gcc --sysroot=$(ROOT)
CXX      = $(MACHINE)-linux-gnu-g++ --sysroot=$(ROOT)
NVCC     =
PKG_CONFIG = PKG_CONFIG_SYSROOT_DIR=$(ROOT) PKG_CONFIG_LIBDIR=$(ROOT)/usr/lib/$(MACHINE)-linux-gnu/pkgconfig pkg-config
EMULATOR = qemu-$(MACHINE)-static -L $(ROOT)
endif
