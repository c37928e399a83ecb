// The training kernels on AVX-512 with products of bf16 pairs; all else is the f32 of AVX-512.
#include "engine/train/kernels/kernels.h"

#if defined(__x86_64__)
#include "engine/train/kernels/product_bf16.h"
#include "engine/train/kernels/set.h"

const TrainKernels train_kernels_avx512_bf16 = TRAIN_KERNELS("avx512_bf16", true);
#endif
