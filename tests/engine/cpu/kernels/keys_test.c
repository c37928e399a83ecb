// Keys and values: key_at and value_at read back everything stored, head by head, and copying from one area
// to another moves exactly one key.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/cpu/kernels/keys.h"

#include <math.h>

enum { COUNT = 40 };

typedef struct {
    void *k, *v;
} Area;

static Area new_area(const KeyLayout *l) {
    size_t size = dtype_size(l->dtype);
    Area a = {mem_new(key_area(l, COUNT), size), mem_new(value_area(l, COUNT), size)};
    memset(a.k, 0xff, key_area(l, COUNT) * size);
    memset(a.v, 0xff, value_area(l, COUNT) * size);
    return a;
}

static void free_area(Area *a) {
    mem_free(a->k);
    mem_free(a->v);
}

static float key_of(const KeyLayout *l, const Area *a, int i, int head, int d) {
    return dtype_load(l->dtype, a->k, key_head(l, head) + key_at(l, i, d));
}
static float value_of(const KeyLayout *l, const Area *a, int i, int head, int d) {
    return dtype_load(l->dtype, a->v, value_head(l, head) + value_at(l, i, d));
}

static void check_case(const Shape *s, Dtype dtype, Random *r) {
    KeyLayout l = key_layout(s, dtype);
    Area a = new_area(&l), b = new_area(&l);
    int n = shape_kv_width(s), i = test_between(r, 0, COUNT - 1), to = test_between(r, 0, COUNT - 1);
    float *key = mem_new((size_t)n, sizeof *key), *value = mem_new((size_t)n, sizeof *value);
    for (int k = 0; k < n; k++) {
        key[k] = dtype_round(dtype, random_normal(r));
        value[k] = dtype_round(dtype, random_normal(r));
    }
    keys_store(&l, key, value, a.k, a.v, i);
    keys_copy(&l, a.k, a.v, i, b.k, b.v, to);
    for (int other = 0; other < COUNT; other++)
        for (int head = 0; head < s->kv_heads; head++)
            for (int d = 0; d < s->head_dim; d++) {
                float x = key_of(&l, &b, other, head, d), y = value_of(&l, &b, other, head, d);
                int at = head * s->head_dim + d;
                if (other != to) assert_true(isnan(x) && isnan(y));
                else assert_true(x == key[at] && y == value[at]);
                assert_true(other == i || isnan(key_of(&l, &a, other, head, d)));
            }
    mem_free(key), mem_free(value);
    free_area(&a), free_area(&b);
}

static void stored_and_copied(void **state) {
    (void)state;
    Random r = test_random(33);
    for (int round = 0; round < 60; round++) {
        Shape s = {.kv_heads = test_between(&r, 1, 4), .head_dim = 2 * test_between(&r, 1, 40)};
        check_case(&s, (Dtype)(round % 3), &r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stored_and_copied)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
