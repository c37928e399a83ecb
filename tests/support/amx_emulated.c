#include "tests/support/amx_emulated.h"

#define cpu_ops_amx     cpu_ops_amx_emulated
#define cpu_amx_works   amx_emulated_works
#define attend_on_tiles attend_on_tiles_emulated
#if defined(__x86_64__)
#define SET_BELOW cpu_ops_portable
#endif
#include "engine/cpu/kernels/attend_tiles.c"
#include "engine/cpu/kernels/ops_amx.c" // both compiled without the flags that make tiles real
