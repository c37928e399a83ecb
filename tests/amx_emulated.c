#include "tests/amx_emulated.h"

#define cpu_ops_amx   cpu_ops_amx_emulated
#define cpu_amx_works amx_emulated_works
#include "engine/cpu/ops_amx.c" // compiled without the flags that make tiles real
