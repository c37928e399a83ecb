// What launches need of the rest of the runtime.
#pragma once
#include "tests/ptx/machine.h"

#include <cuda_runtime_api.h>

enum { MOST_DEVICES = 16 };
typedef enum { CODE_80, CODE_90, CODE_90A, CODES } Code; // the PTX that a device gets

void runtime_begin(void);                     // of a call: nobody else is in one
cudaError_t runtime_end(cudaError_t code);    // the thread's last error, if it is one
cudaError_t runtime_failed(cudaError_t code); // the same of a call that did not begin
uint32_t runtime_device(void);                // the thread's
Code runtime_code(uint32_t device);
cudaError_t runtime_usable(cudaStream_t s); // cudaSuccess: the thread may put work into it
void runtime_put(cudaStream_t s, Launch l); // its params are taken
