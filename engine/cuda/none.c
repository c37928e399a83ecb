// The CUDA backend of a build without CUDA: every call fails with the same error, and there are 0 devices.
#include "engine/cuda/cuda.h"

const Backend cuda_backend = {.name = "cuda"};

static bool refuse(Error *e) {
    return error_input(e, "this build of outpace has no CUDA engine; leave --device out to run on the CPU");
}

bool cuda_open(const Model *model, const BackendOptions *o, void **self, Error *e) {
    (void)model, (void)o;
    *self = NULL;
    return refuse(e);
}

int cuda_fits(const Model *model, const BackendOptions *o) {
    (void)model, (void)o;
    return 0;
}

size_t cuda_weights(const Model *model, const BackendOptions *o, size_t *decoded) {
    (void)model, (void)o;
    return *decoded = 0;
}

int cuda_count(void) { return 0; }
bool cuda_absent(void) { return true; }

bool cuda_usable(int ordinal, Error *e) {
    (void)ordinal;
    return refuse(e);
}

bool cuda_gauge(int ordinal, Gauge *out, Error *e) {
    (void)ordinal, (void)out;
    return refuse(e);
}

bool cuda_ceilings(const BackendOptions *o, Ceilings *out, Error *e) {
    (void)o, (void)out;
    return refuse(e);
}

bool cuda_copy_rate(int ordinal, double *bytes_per_s, Error *e) {
    (void)ordinal, (void)bytes_per_s;
    return refuse(e);
}
