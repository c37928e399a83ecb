// The training kernels on AVX-512.
#include "engine/train/kernels/kernels.h"

#if defined(__x86_64__)
#include "engine/train/kernels/product.h"
#include "engine/train/kernels/set.h"

const TrainKernels train_kernels_avx512 = TRAIN_KERNELS("avx512", false);
#endif
