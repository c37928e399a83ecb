#include "engine/cpu/ops.h"

#include "engine/base/text.h"

#include <string.h>

static const CpuOps *const SETS[] = {&cpu_ops_reference, &cpu_ops_portable};
enum { SET_COUNT = sizeof SETS / sizeof *SETS };

const CpuOps *const *cpu_ops_table(size_t *count) {
    *count = SET_COUNT;
    return SETS;
}

static const CpuOps *best(void) {
    size_t i = SET_COUNT - 1;
    while (!SETS[i]->available()) i--;
    return SETS[i];
}

static const CpuOps *unknown(const char *name, Error *e) {
    Text list = {0};
    for (size_t i = 0; i < SET_COUNT; i++)
        text_printf(&list, "%s%s%s", i ? ", " : "", SETS[i]->name,
                    SETS[i]->available() ? "" : " (not on this processor)");
    error_input(e, "there is no kernel set '%s': choose one of %s", name, text_get(&list));
    text_release(&list);
    return NULL;
}

const CpuOps *cpu_ops_find(const char *name, Error *e) {
    if (!name || !name[0]) return best();
    for (size_t i = 0; i < SET_COUNT; i++)
        if (strcmp(SETS[i]->name, name) == 0) {
            if (SETS[i]->available()) return SETS[i];
            error_input(e, "this processor does not have the kernel set '%s'; leave --isa out to use '%s'",
                        name, best()->name);
            return NULL;
        }
    return unknown(name, e);
}
