#include "engine/cuda/device.h"

#include "engine/cuda/cuda.h"

enum { LEAST_MAJOR = 8 }; // bf16 on tensor cores, asynchronous copies

// A driver runs what was built for its own major version of CUDA, or for an older one.
static bool no_answer(int ordinal, int code, Error *e) {
    int driver, runtime;
    if (gpu_versions(&driver, &runtime) == 0 && driver / 1000 < runtime / 1000)
        return error_system(
            e,
            "cuda:%d: the NVIDIA driver here is for CUDA %d.%d, this build needs one for %d: update it (%s "
            "or "
            "later), or install cuda-compat-%d-%d (data-centre cards)%s; --device cpu runs on the CPU",
            ordinal, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime < 13000 ? "525" : "580",
            runtime / 1000, runtime % 1000 / 10,
            driver >= 12000 ? ", or build with CUDA 12 (make NVCC=/path/to/nvcc)" : "");
    return error_system(e, "cuda:%d: the NVIDIA driver does not answer: %s", ordinal, gpu_error(code));
}

bool device_find(int ordinal, GpuFacts *out, Error *e) {
    int count, code = gpu_count(&count);
    if (code) return no_answer(ordinal, code, e);
    if (count == 0)
        return error_system(
            e, "cuda:%d: this machine has no NVIDIA GPU, or no driver for it; --device cpu runs on the CPU",
            ordinal);
    if (ordinal >= count)
        return error_input(e, "cuda:%d: this machine has %d NVIDIA GPU%s, from cuda:0 on", ordinal, count,
                           count > 1 ? "s" : "");
    code = gpu_use(ordinal);
    if (!code) code = gpu_facts(ordinal, out);
    if (code) return error_system(e, "cuda:%d: cannot be used: %s", ordinal, gpu_error(code));
    return out->major >= LEAST_MAJOR || error_input(e,
                                                    "cuda:%d: '%s' is of compute capability %d.%d, at least "
                                                    "%d.0 is needed; --device cpu runs on the CPU",
                                                    ordinal, out->name, out->major, out->minor, LEAST_MAJOR);
}
