// The training kernels in plain C: what any processor runs.
#include "engine/train/product.h"
#include "engine/train/set.h"

const TrainKernels train_kernels_portable = TRAIN_KERNELS("portable", false);
