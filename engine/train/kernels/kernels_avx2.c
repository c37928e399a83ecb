// The training kernels on AVX2.
#include "engine/train/kernels/kernels.h"

#if defined(__x86_64__)
#include "engine/train/kernels/product.h"
#include "engine/train/kernels/set.h"

const TrainKernels train_kernels_avx2 = TRAIN_KERNELS("avx2", false);
#endif
