#include "tests/support/block_golden.h"

#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/core/session.h"
#include "engine/model/adapter.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { MOST_VOCAB = 259, MOST_RANK = 8, CONTEXT = 60 };
static const double TOLERANCE = 2e-5;

static const char *root(void) {
    const char *root = getenv("OUTPACE_ROOT");
    return root ? root : ".";
}

static float *read_floats(const char *dir, const char *name, size_t *count) {
    char path[1024], *bytes;
    size_t size;
    Error e = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!file_read(path, 1 << 20, &bytes, &size, &e)) fail_msg("%s", e.text);
    *count = size / sizeof(float);
    return (float *)(void *)bytes;
}

static int int_of(const json_t *o, const char *key) {
    return (int)json_integer_value(json_object_get(o, key));
}

static double row_error(const float *got, const float *want, int n) {
    double scale = 0, worst = 0;
    for (int i = 0; i < n; i++) scale = fmax(scale, fabs((double)want[i]));
    for (int i = 0; i < n; i++) worst = test_worse(worst, fabs((double)got[i] - (double)want[i]));
    return worst / scale;
}

// The states' rows become context.
static void add_context(Session *s, const float *states, int count) {
    int tokens[CONTEXT] = {0};
    assert_true(session_prefill_hidden(s, tokens, count, states, NULL));
}

typedef struct {
    double logits, confidence;
    int guesses, wrong;
} Worst;

static void check_step(Session *s, const Adapter *a, const json_t *step, const float *want, Worst *w) {
    const BlockDraft *b = &s->shape.block;
    float state[MOST_RANK] = {0}, logits[MOST_VOCAB];
    int token = int_of(step, "root"), vocab = s->shape.vocab, length = s->cache.length;
    const json_t *guesses = json_object_get(step, "guesses"),
                 *confidences = json_object_get(step, "confidences");
    assert_true(vocab <= MOST_VOCAB && b->rank <= MOST_RANK);
    session_begin_block(s, b->rows, token);
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_LOGITS, NULL));
    assert_int_equal(json_array_size(guesses), (size_t)block_guesses(b));
    for (int i = 0; i < block_guesses(b); i++, want += vocab) {
        int row = i + !b->from_root, best = 0;
        Follow f = {.token = token, .state = state, .logits = b->markov ? logits : NULL};
        memcpy(logits, session_logits(s, row), (size_t)vocab * sizeof *logits);
        assert_true(session_follow(s, row, &f, NULL));
        w->logits = test_worse(w->logits, row_error(logits, want, vocab));
        for (int v = 0; v < vocab; v++)
            if (logits[v] > logits[best]) best = v;
        token = (int)json_integer_value(json_array_get(guesses, (size_t)i));
        w->wrong += (a->draft_ids ? a->draft_ids[best] : best) != token;
        w->guesses++;
        if (!b->confidence) continue;
        double chance = json_real_value(json_array_get(confidences, (size_t)i));
        w->confidence = test_worse(w->confidence, fabs(f.confidence - chance));
    }
    assert_int_equal(s->cache.length, length); // the block left nothing
}

static void check_case(const ExactBackend *on, const Model *target, const char *name) {
    char dir[512], path[1024];
    Adapter a;
    Session s;
    Worst w = {0};
    void *self;
    size_t state_count, logit_count;
    Error e = {0};
    snprintf(dir, sizeof dir, "%s/tests/fixtures/blocks/%s", root(), name);
    snprintf(path, sizeof path, "%s/case.json", dir);
    json_t *j = json_from_file(path, 1 << 16, &e);
    if (!j) fail_msg("%s", e.text);
    if (!adapter_open(&a, target, dir, &e)) fail_msg("%s", e.text);
    assert_int_equal(a.models[0].shape.vocab, int_of(j, "vocab"));
    BackendOptions o = {
        .compute = COMPUTE_F32, .context = CONTEXT, .threads = 2, .isa = getenv("OUTPACE_ISA")};
    if (!on->open(&a.models[0], &o, &self, &e)) fail_msg("%s", e.text);
    session_init(&s, on->backend, self, &a.models[0].shape, &o);
    float *states = read_floats(dir, "states.f32", &state_count),
          *logits = read_floats(dir, "logits.f32", &logit_count);
    const json_t *steps = json_object_get(j, "steps");
    const float *at = states, *want = logits;
    int prompt = int_of(j, "prompt"), width = shape_given_width(&s.shape);
    add_context(&s, at, prompt);
    at += prompt * width;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        int more = int_of(step, "kept") + 1;
        check_step(&s, &a, step, want, &w);
        add_context(&s, at, more);
        at += more * width;
        want += block_guesses(&s.shape.block) * s.shape.vocab;
    }
    assert_true(at == states + state_count && want == logits + logit_count);
    print_message("%s: logits %.1e, confidence %.1e, %d of %d guesses wrong\n", name, w.logits, w.confidence,
                  w.wrong, w.guesses);
    if (w.wrong || !(w.logits <= TOLERANCE && w.confidence <= TOLERANCE)) fail_msg("%s", name);
    mem_free(states);
    mem_free(logits);
    json_decref(j);
    session_release(&s);
    adapter_close(&a);
}

void block_golden(const ExactBackend *on) {
    char path[512];
    Model target;
    ModelWeights target_weights;
    Error e = {0};
    int count = 0;
    snprintf(path, sizeof path, "%s/build/golden/llama", root());
    if (!model_open(&target, &target_weights, path, &e)) fail_msg("%s", e.text);
    snprintf(path, sizeof path, "%s/tests/fixtures/blocks", root());
    DIR *d = opendir(path);
    if (!d) fail_msg("cannot open '%s': run from the repository's root, or set OUTPACE_ROOT", path);
    for (struct dirent *f; (f = readdir(d));)
        if (f->d_name[0] != '.') {
            check_case(on, &target, f->d_name);
            count++;
        }
    closedir(d);
    assert_true(count >= 7);
    model_close(&target_weights);
}
