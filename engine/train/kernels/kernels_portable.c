// The training kernels in plain C: what any processor runs.
#define LANES_PLAIN
#include "engine/train/kernels/product.h"
#include "engine/train/kernels/set.h"

const TrainKernels train_kernels_portable = TRAIN_KERNELS("portable", false);
