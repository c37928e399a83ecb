#include "engine/cpu/kernels/sets.h"

#include "engine/base/text.h"
#include "engine/cpu/kernels/features.h"

#include <string.h>

bool kernel_set_always(void) { return true; }
bool kernel_set_avx2(void) { return cpu_features().avx2; }
bool kernel_set_avx512(void) { return cpu_features().avx512; }
bool kernel_set_avx512_bf16(void) { return cpu_features().avx512_bf16; }
bool kernel_set_neon_bf16(void) { return cpu_features().neon_bf16; }

static const KernelSet *best(const KernelSet *sets, size_t count) {
    size_t i = count - 1;
    while (!sets[i].available()) i--;
    return &sets[i];
}

static const void *unknown(const KernelSet *sets, size_t count, const char *name, Error *e) {
    Text list = {0};
    for (size_t i = 0; i < count; i++)
        text_printf(&list, "%s%s%s", i ? ", " : "", *sets[i].name,
                    sets[i].available() ? "" : " (not on this processor)");
    error_input(e, "there is no kernel set '%s': choose one of %s", name, text_get(&list));
    text_release(&list);
    return NULL;
}

const void *kernel_set_find(const KernelSet *sets, size_t count, const char *name, Error *e) {
    if (!name || !name[0]) return best(sets, count)->kernels;
    for (size_t i = 0; i < count; i++)
        if (strcmp(*sets[i].name, name) == 0) {
            if (sets[i].available()) return sets[i].kernels;
            error_input(e, "this processor does not have the kernel set '%s'; leave it out to use '%s'", name,
                        *best(sets, count)->name);
            return NULL;
        }
    return unknown(sets, count, name, e);
}
