#include "engine/train/kernels.h"

#include "engine/base/text.h"
#include "engine/cpu/features.h"

#include <string.h>

// What a processor needs is asked here, in code that every processor runs.
typedef struct KernelSet {
    const TrainKernels *kernels;
    bool (*available)(void);
} KernelSet;

static bool always(void) { return true; }

#if defined(__x86_64__)
static bool has_avx2(void) { return cpu_features().avx2; }
static bool has_avx512(void) { return cpu_features().avx512; }
static bool has_avx512_bf16(void) { return cpu_features().avx512_bf16; }
#endif

static const KernelSet SETS[] = {
    {&train_kernels_portable,    always         },
#if defined(__x86_64__)
    {&train_kernels_avx2,        has_avx2       },
    {&train_kernels_avx512,      has_avx512     },
    {&train_kernels_avx512_bf16, has_avx512_bf16},
#endif
};
enum { SET_COUNT = sizeof SETS / sizeof *SETS };

size_t train_kernels_count(void) { return SET_COUNT; }

const TrainKernels *train_kernels_at(size_t i, bool *available) {
    if (available) *available = SETS[i].available();
    return SETS[i].kernels;
}

const TrainKernels *train_kernels_find(const char *name, Error *e) {
    Text list = {0};
    for (size_t i = SET_COUNT; i-- > 0;) {
        if (!SETS[i].available()) continue;
        if (!name || !name[0] || strcmp(SETS[i].kernels->name, name) == 0) {
            text_release(&list);
            return SETS[i].kernels;
        }
        text_printf(&list, "%s%s", list.length ? ", " : "", SETS[i].kernels->name);
    }
    error_input(e, "there is no set of training kernels '%s' on this processor: choose one of %s", name,
                text_get(&list));
    text_release(&list);
    return NULL;
}
