// The training kernels on NEON.
#include "engine/train/kernels/kernels.h"

#if defined(__aarch64__)
#include "engine/train/kernels/product.h"
#include "engine/train/kernels/set.h"

const TrainKernels train_kernels_neon = TRAIN_KERNELS("neon", false);
#endif
