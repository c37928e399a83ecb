// Every operation in lanes: the source of all kernel sets made of lanes only. sets.mk compiles it
// once for each of them, with the set's compiler flags and -DSET=avx2 or the like, to ops_avx2.o or the like.
// An object may contain instructions that only processors with its set have, so it's called only after
// features.h has asked.
#include "engine/cpu/kernels/attend.h"
#include "engine/cpu/kernels/codes.h"
#include "engine/cpu/kernels/ops.h"
#include "engine/cpu/kernels/rows.h"

#define JOIN(a, b)   a##b
#define OPS_OF(set)  JOIN(cpu_ops_, set)
#define QUOTE(name)  #name
#define NAME_OF(set) QUOTE(set)

const CpuOps OPS_OF(SET) = CPU_OPS_ROW(NAME_OF(SET));
