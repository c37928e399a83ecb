#include "engine/cpu/ops.h"

#include "engine/base/text.h"
#include "engine/cpu/features.h"

#include <string.h>

// What a processor needs is asked here, in code that every processor runs.
typedef struct KernelSet {
    const CpuOps *ops;
    bool (*available)(void);
} KernelSet;

static bool always(void) { return true; }

#if defined(__x86_64__)
static bool has_avx2(void) { return cpu_features().avx2; }
static bool has_avx512(void) { return cpu_features().avx512; }
static bool has_avx512_bf16(void) { return cpu_features().avx512_bf16; }
static bool has_amx(void) { return cpu_features().amx && cpu_amx_works(); }
#endif

static const KernelSet SETS[] = {
    {&cpu_ops_reference,   always         },
    {&cpu_ops_portable,    always         },
#if defined(__x86_64__)
    {&cpu_ops_avx2,        has_avx2       },
    {&cpu_ops_avx512,      has_avx512     },
    {&cpu_ops_avx512_bf16, has_avx512_bf16},
    {&cpu_ops_amx,         has_amx        },
#endif
};
enum { SET_COUNT = sizeof SETS / sizeof *SETS };

size_t cpu_ops_count(void) { return SET_COUNT; }

const CpuOps *cpu_ops_at(size_t i, bool *available) {
    if (available) *available = SETS[i].available();
    return SETS[i].ops;
}

static const CpuOps *best(void) {
    size_t i = SET_COUNT - 1;
    while (!SETS[i].available()) i--;
    return SETS[i].ops;
}

static const CpuOps *unknown(const char *name, Error *e) {
    Text list = {0};
    for (size_t i = 0; i < SET_COUNT; i++)
        text_printf(&list, "%s%s%s", i ? ", " : "", SETS[i].ops->name,
                    SETS[i].available() ? "" : " (not on this processor)");
    error_input(e, "there is no kernel set '%s': choose one of %s", name, text_get(&list));
    text_release(&list);
    return NULL;
}

const CpuOps *cpu_ops_find(const char *name, Error *e) {
    if (!name || !name[0]) return best();
    for (size_t i = 0; i < SET_COUNT; i++)
        if (strcmp(SETS[i].ops->name, name) == 0) {
            if (SETS[i].available()) return SETS[i].ops;
            error_input(e, "this processor does not have the kernel set '%s'; leave it out to use '%s'", name,
                        best()->name);
            return NULL;
        }
    return unknown(name, e);
}
