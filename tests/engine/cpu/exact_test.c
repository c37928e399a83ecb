// The exactness suite on every kernel set of this processor, and on tiles, emulated and with their
// instructions trapped; if OUTPACE_ISA names a set, on that one only.
#include "tests/support/amx_emulated.h"
#include "tests/support/check.h"
#include "tests/support/exact_suite.h"
#include "tests/support/tiles_trapped.h"

#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/instance.h"

#include <stdlib.h>
#include <string.h>

// Everything that a run hasn't written is NaN.
static void poison(Session *s) {
    Cpu *c = s->self;
    size_t kv = (size_t)c->model->shape.layers;
    memset(c->cache.k, 0xff, kv * c->cache.k_bytes);
    memset(c->cache.v, 0xff, kv * c->cache.v_bytes);
    memset(c->step.k, 0xff, kv * c->step.k_bytes);
    memset(c->step.v, 0xff, kv * c->step.v_bytes);
    memset(c->hidden, 0xff, (size_t)c->max_nodes * (size_t)c->model->shape.width * sizeof(float));
}

// Where not all is tried: neither the plain set nor the best.
static bool left_out(const char *set) {
    const char *only = getenv("OUTPACE_ISA");
    if (only && *only) return strcmp(only, set) != 0;
    return !test_long() && strcmp(set, "portable") && strcmp(set, cpu_ops_find(NULL, NULL)->name) &&
           !strstr(set, "amx");
}

static void every_set(void **state) {
    (void)state;
    for (size_t i = 0; i < cpu_ops_count(); i++) {
        bool available;
        const char *name = cpu_ops_at(i, &available)->name;
        if (left_out(name)) continue;
        bool slow = strcmp(name, "reference") == 0;
        ExactBackend b = {&cpu_backend, cpu_open, poison, name, EXACT_MAX_CONTEXT};
        if (available) exact_suite(&b, 0, slow ? 10 : 30, slow ? 25 : EXACT_MAX_NODES);
        print_message("%s: %s\n", name, available ? "exact" : "not on this processor");
    }
}

// An instance with other kernels, and their packing.
static bool open_with(const CpuOps *ops, const Model *model, const BackendOptions *o, void **self, Error *e) {
    const Shape *s = &model->shape;
    if (!cpu_open(model, o, self, e)) return false;
    Cpu *c = *self;
    c->ops = ops;
    const Experts *x = &s->experts;
    int rows = PANEL * 2 * (x->chosen + 1), widest = s->width + shape_q_width(s) + s->mlp_width;
    size_t bytes = c->ops->packed_bytes(rows, widest + x->width + x->shared_width);
    assert_true(mem_take(&c->blocks, &c->panel.packed, bytes, 1));
    return true;
}

static bool open_emulated(const Model *model, const BackendOptions *o, void **self, Error *e) {
    return open_with(&cpu_ops_amx_emulated, model, o, self, e);
}

static void emulated_tiles(void **state) {
    (void)state;
    if (left_out("amx, emulated")) skip();
    ExactBackend b = {&cpu_backend, open_emulated, poison, "portable", EXACT_MAX_CONTEXT};
    exact_suite(&b, 0, test_some(4, 12), 40);
}

// The object code for tiles, on a processor without them.
static bool open_trapped(const Model *model, const BackendOptions *o, void **self, Error *e) {
    return open_with(&cpu_ops_amx, model, o, self, e);
}

static void trapped_tiles(void **state) {
    (void)state;
    if (left_out("amx") || !tiles_trap()) skip();
    ExactBackend b = {&cpu_backend, open_trapped, poison, "avx512_bf16", EXACT_MAX_CONTEXT};
    exact_suite(&b, test_some(COMPUTE_BF16, 0), test_some(1, 3), 16); // of bf16, which tiles are for
    assert_true(tiles_trap_end() > 0);
}

static bool open_plain(const Model *model, const BackendOptions *o, void **self, Error *e) {
    BackendOptions plain = *o;
    plain.plain = true;
    return cpu_open(model, &plain, self, e);
}

static void plain_attention(void **state) {
    (void)state;
    const CpuOps *best = cpu_ops_find(getenv("OUTPACE_ISA"), NULL);
    assert_non_null(best);
    ExactBackend b = {&cpu_backend, open_plain, poison, best->name, EXACT_MAX_CONTEXT};
    exact_suite(&b, 0, 12, 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_set), cmocka_unit_test(plain_attention),
                                       cmocka_unit_test(emulated_tiles), cmocka_unit_test(trapped_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
