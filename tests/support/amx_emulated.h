// The matrix-tile kernels on emulated tiles (engine/cpu/kernels/tiles.h): the same source, for any processor.
#pragma once
#include "engine/cpu/kernels/ops.h"

extern const CpuOps cpu_ops_amx_emulated;
bool amx_emulated_works(void);
