// Attention on matrix tiles. Compiled like ops_amx.c, whose set it is part of.
#pragma once
#include "engine/cpu/kernels/ops.h"

// False where keys are not in bf16 or heads not whole tiles wide: nothing is done then.
bool attend_on_tiles(const Attend *a);
