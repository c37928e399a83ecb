#include "harness/machine/environment.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "harness/machine/libraries.h"
#include "harness/program/version.h"

static char *libraries(void) {
    json_t *root = libraries_json();
    char *text = json_text(root, 0);
    json_decref(root);
    return text;
}

bool environment_open(Environment *out, const Machine *m, const char *device, Error *e) {
    out->libraries = libraries();
    if (!out->libraries) return error_system(e, "out of memory");
    out->on = (StoreEnvironment){.version = version_text(),
                                 .compiler = version_compiler(),
                                 .libraries = out->libraries,
                                 .host = m->host,
                                 .system = m->system,
                                 .kernel = m->kernel,
                                 .cpu = m->cpu,
                                 .isa = m->isa,
                                 .governor = m->governor,
                                 .cores = m->cores,
                                 .virtual_machine = m->virtual_machine,
                                 .l1d = (int64_t)m->l1d,
                                 .l2 = (int64_t)m->l2,
                                 .l3 = (int64_t)m->l3,
                                 .memory = (int64_t)m->memory};
    if (device) gauges_name(device, &out->gpus, &out->on);
    return true;
}

void environment_release(Environment *v) {
    mem_free(v->libraries);
    *v = (Environment){0};
}
