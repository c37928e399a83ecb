// See cublas.h. The library is searched for in this order: $OUTPACE_CUBLAS, the loader's paths, the toolkit's
// own place, and the packages of the python3 on PATH, where machines for learning have it.
//
// Invariant: either all functions of a Cublas are set and `handle` is open, or it is empty.
#include "engine/cuda/cublas.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const NAMES[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
enum { NAME_COUNT = sizeof NAMES / sizeof *NAMES, PATH_SIZE = 4096 };

// The library stays loaded when it's closed: the driver keeps its kernels, and its own code must be there
// when the program ends.
static void *open_file(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

static void *open_in(const char *dir) {
    char path[PATH_SIZE];
    void *library = NULL;
    for (int i = 0; i < NAME_COUNT && !library; i++) {
        int n = snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", NAMES[i]);
        if (n > 0 && (size_t)n < sizeof path) library = open_file(path);
    }
    return library;
}

// The packages of one python3: bin/python3 has them in lib/python3.N/.
static void *open_beside_python(const char *bin, size_t length) {
    char pattern[PATH_SIZE];
    glob_t found;
    void *library = NULL;
    int n = snprintf(pattern, sizeof pattern, "%.*s/python3", (int)length, bin);
    if (n < 0 || (size_t)n >= sizeof pattern || access(pattern, X_OK)) return NULL;
    n = snprintf(pattern, sizeof pattern, "%.*s/../lib/python3*/*-packages/nvidia/*/lib", (int)length, bin);
    if (n < 0 || (size_t)n >= sizeof pattern || glob(pattern, 0, NULL, &found)) return NULL;
    for (size_t i = 0; i < found.gl_pathc && !library; i++) library = open_in(found.gl_pathv[i]);
    globfree(&found);
    return library;
}

static void *open_python(void) {
    const char *path = getenv("PATH");
    void *library = NULL;
    for (size_t n; path && *path && !library; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        library = n ? open_beside_python(path, n) : NULL;
    }
    return library;
}

static bool open_library(Cublas *c, Error *e) {
    const char *given = getenv("OUTPACE_CUBLAS");
    if (given && *given) {
        c->library = open_file(given);
        return c->library || error_input(e, "$OUTPACE_CUBLAS: %s", dlerror());
    }
    c->library = open_in("");
    if (!c->library) c->library = open_in("/usr/local/cuda/lib64");
    if (!c->library) c->library = open_python();
    return c->library ||
           error_system(
               e,
               "math fast needs cuBLASLt: no %s or %s on the loader's path, in /usr/local/cuda/lib64 or "
               "in python3's packages; set OUTPACE_CUBLAS to its file, or use --math exact",
               NAMES[0], NAMES[1]);
}

static bool find_functions(Cublas *c, Error *e) {
    const struct {
        const char *name;
        void *function; // where its address goes
    } list[] = {
        {"cublasLtCreate", &c->create},
        {"cublasLtDestroy", &c->destroy},
        {"cublasLtGetVersion", &c->get_version},
        {"cublasLtMatmulDescCreate", &c->operation_create},
        {"cublasLtMatmulDescDestroy", &c->operation_destroy},
        {"cublasLtMatmulDescSetAttribute", &c->operation_set},
        {"cublasLtMatrixLayoutCreate", &c->layout_create},
        {"cublasLtMatrixLayoutDestroy", &c->layout_destroy},
        {"cublasLtMatmulPreferenceCreate", &c->preference_create},
        {"cublasLtMatmulPreferenceDestroy", &c->preference_destroy},
        {"cublasLtMatmulPreferenceSetAttribute", &c->preference_set},
        {"cublasLtMatmulAlgoGetHeuristic", &c->find},
        {"cublasLtMatmul", &c->multiply},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        void *symbol = dlsym(c->library, list[i].name);
        if (!symbol) return error_system(e, "math fast: this cuBLASLt has no '%s'", list[i].name);
        memcpy(list[i].function, &symbol, sizeof symbol);
    }
    return true;
}

bool cublas_open(Cublas *c, Error *e) {
    *c = (Cublas){.library = NULL};
    if (!open_library(c, e)) return false;
    int status = -1;
    if (find_functions(c, e)) {
        size_t v = c->get_version(); // 130002: 13.0.2
        snprintf(c->version, sizeof c->version, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
        status = c->create(&c->handle);
        if (status)
            error_system(e, "math fast: cuBLASLt %s cannot be used here: status %d", c->version, status);
    }
    if (status) cublas_close(c);
    return status == 0;
}

void cublas_close(Cublas *c) {
    if (c->handle) c->destroy(c->handle);
    if (c->library) dlclose(c->library);
    *c = (Cublas){.library = NULL};
}
