// The lanes in plain C: what any processor runs, and what other sets fall back to.
#define LANES_PLAIN
#include "engine/cpu/kernels/lane_ops.h"

const CpuOps cpu_ops_portable = LANE_OPS("portable");
