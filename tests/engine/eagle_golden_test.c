// EAGLE's drafts against networks written with PyTorch: small random drafts in their authors' files, with the
// logits of rows with given states and of a tree below them (by tests/oracle/eagle.py). f32 within 2e-5 of
// the largest logit of a row.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/core/session.h"
#include "engine/model/adapter.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 64 };
static const double TOLERANCE = 2e-5;

typedef struct {
    char dir[512];
    int given, count, vocab;
    int tokens[MOST_ROWS], parents[MOST_ROWS];
    char *states, *logits;
} Case;

static const char *root(void) {
    const char *root = getenv("OUTPACE_ROOT");
    return root ? root : ".";
}

static char *read_floats(const Case *c, const char *name, size_t *count) {
    char path[1024], *bytes;
    size_t size;
    Error e = {0};
    snprintf(path, sizeof path, "%s/%s", c->dir, name);
    if (!file_read(path, 1 << 20, &bytes, &size, &e)) fail_msg("%s", e.text);
    *count = size / sizeof(float);
    return bytes;
}

static void read_case(Case *c, const char *name) {
    char path[1024];
    Error e = {0};
    snprintf(c->dir, sizeof c->dir, "%s/tests/fixtures/eagle/%s", root(), name);
    snprintf(path, sizeof path, "%s/case.json", c->dir);
    json_t *j = json_from_file(path, 1 << 16, &e);
    if (!j) fail_msg("%s", e.text);
    const json_t *tokens = json_object_get(j, "tokens"), *parents = json_object_get(j, "parents");
    c->given = (int)json_integer_value(json_object_get(j, "given"));
    c->vocab = (int)json_integer_value(json_object_get(j, "vocab"));
    c->count = (int)json_array_size(tokens);
    assert_true(c->count <= MOST_ROWS && c->given + (int)json_array_size(parents) == c->count);
    for (int i = 0; i < c->count; i++) {
        int parent = (int)json_integer_value(json_array_get(parents, (size_t)(i - c->given)));
        c->tokens[i] = (int)json_integer_value(json_array_get(tokens, (size_t)i));
        c->parents[i] = i < c->given ? i - 1 : parent < 0 ? c->given - 1 : c->given + parent;
    }
    json_decref(j);
}

// Adds the rows after the given ones level by level: each waits for its parent.
static void grow(Session *s, const Case *c, int *node) {
    int left = c->count - c->given;
    while (left) {
        int before = left;
        for (int i = c->given; i < c->count; i++) {
            int parent = node[c->parents[i]];
            if (node[i] != TREE_NONE || parent == TREE_NONE || s->done[parent] == 0) continue;
            node[i] = tree_probe(&s->tree, parent, c->tokens[i], true);
            left--;
        }
        assert_true(left < before && session_run(s, s->shape.layers, NULL));
    }
}

static double row_error(const float *got, const float *want, int n) {
    double scale = 0, worst = 0;
    for (int i = 0; i < n; i++) scale = fmax(scale, fabs((double)want[i]));
    for (int i = 0; i < n; i++) worst = test_worse(worst, fabs((double)got[i] - (double)want[i]));
    return worst / scale;
}

// held: given rows that are in the cache.
static double error_of(Session *s, const Case *c, int held) {
    int node[MOST_ROWS], width = shape_given_width(&s->shape);
    size_t states, logits;
    char *rows = read_floats(c, "states.f32", &states), *want = read_floats(c, "logits.f32", &logits);
    assert_int_equal(states, (size_t)(c->given * width));
    assert_int_equal(logits, (size_t)(c->count * c->vocab));
    const float *given = (const float *)(const void *)rows, *all = (const float *)(const void *)want;
    for (int i = 0; i < c->count; i++) node[i] = TREE_NONE;
    session_reset(s);
    assert_true(session_prefill_hidden(s, c->tokens, held, given, NULL));
    session_begin_step(s, false, LAYOUT_TREE);
    for (int i = held; i < c->given; i++)
        node[i] = i == held ? tree_root(&s->tree, c->tokens[i])
                            : tree_probe(&s->tree, node[i - 1], c->tokens[i], true);
    assert_true(session_set_hidden(s, 0, c->given - held, given + held * width, NULL));
    assert_true(session_run(s, s->shape.layers, NULL));
    grow(s, c, node);
    assert_true(session_read(s, HEAD_LOGITS, NULL));
    double worst = 0;
    for (int i = held; i < c->count; i++)
        worst = test_worse(worst, row_error(session_logits(s, node[i]), all + i * c->vocab, c->vocab));
    mem_free(rows);
    mem_free(want);
    return worst;
}

static void check_case(const Model *target, const char *name) {
    Case c = {.given = 0};
    Adapter a;
    Session s;
    void *self;
    Error e = {0};
    read_case(&c, name);
    if (!adapter_open(&a, target, c.dir, &e)) fail_msg("%s", e.text);
    assert_int_equal(a.models[0].shape.vocab, c.vocab);
    BackendOptions o = {.compute = COMPUTE_F32, .context = 40, .threads = 1, .isa = getenv("OUTPACE_ISA")};
    if (!cpu_open(&a.models[0], &o, &self, &e)) fail_msg("%s", e.text);
    session_init(&s, &cpu_backend, self, &a.models[0].shape, &o);
    double worst = 0;
    for (int held = 0; held < c.given; held++) worst = test_worse(worst, error_of(&s, &c, held));
    print_message("%s: %.2e\n", name, worst);
    if (!(worst <= TOLERANCE)) fail_msg("%s: error %.3g, wanted %.3g", name, worst, TOLERANCE);
    session_release(&s);
    adapter_close(&a);
}

static void all_drafts(void **state) {
    (void)state;
    char path[512];
    Model target;
    ModelWeights target_weights;
    Error e = {0};
    int count = 0;
    snprintf(path, sizeof path, "%s/build/golden/llama", root());
    if (!model_open(&target, &target_weights, path, &e)) fail_msg("%s", e.text);
    snprintf(path, sizeof path, "%s/tests/fixtures/eagle", root());
    DIR *d = opendir(path);
    if (!d) fail_msg("cannot open '%s': run from the repository's root, or set OUTPACE_ROOT", path);
    for (struct dirent *f; (f = readdir(d));)
        if (f->d_name[0] != '.') {
            check_case(&target, f->d_name);
            count++;
        }
    closedir(d);
    assert_true(count >= 11);
    model_close(&target_weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_drafts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
