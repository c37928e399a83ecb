// The CUDA backend of a build without CUDA: every call fails with the same error, and there are 0 devices.
#include "engine/cuda/cuda.h"

const Backend cuda_backend = {.name = "cuda"};

static bool refuse(Error *e) {
    return error_input(e, "this build of outpace has no CUDA engine; leave --device out to run on the CPU");
}

bool cuda_open(UNUSED const Model *model, UNUSED const BackendOptions *o, void **self, Error *e) {
    *self = NULL;
    return refuse(e);
}

int cuda_fits(UNUSED const Model *model, UNUSED const BackendOptions *o) { return 0; }

size_t cuda_weights(UNUSED const Model *model, UNUSED const BackendOptions *o, size_t *decoded) {
    return *decoded = 0;
}

int cuda_count(void) { return 0; }
bool cuda_absent(void) { return true; }

bool cuda_usable(UNUSED int ordinal, Error *e) { return refuse(e); }

bool cuda_gauge(UNUSED int ordinal, UNUSED Gauge *out, Error *e) { return refuse(e); }

bool cuda_ceilings(UNUSED const BackendOptions *o, UNUSED Ceilings *out, Error *e) { return refuse(e); }

bool cuda_copy_rate(UNUSED int ordinal, UNUSED double *bytes_per_s, Error *e) { return refuse(e); }
