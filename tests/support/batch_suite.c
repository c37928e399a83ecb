#include "tests/support/batch_suite.h"

#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include <math.h>
#include <string.h>

static double tick(void *state) { return ((BatchWorld *)state)->ticks++; }

static bool say(void *state, const char *what, double share) {
    (void)what, (void)share;
    BatchWorld *w = state;
    return !w->interrupted || ++w->asked < w->interrupted;
}

static void open_one(BatchWorld *w, Session *s, const Model *m, Compute compute, int threads,
                     Session *first) {
    BackendOptions o = {.compute = compute, .context = BATCH_CONTEXT, .max_nodes = BATCH_NODES, .slack = 16};
    void *self;
    Error e = {0};
    o.threads = threads;
    o.sequences = w->lanes;
    o.first = first == s ? NULL : first->self;
    o.beside = w->sequences[0].target.self;
    o.progress = (Progress){say, w};
    if (!w->on->open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, w->on->backend, self, &m->shape, &o);
}

void batch_world_open(BatchWorld *w, Random *r) {
    Shape shape = random_shape(r);
    if (shape.layers == 1) shape.layers = 2;
    if (shape.vocab > 120) shape.vocab = shape.real_vocab = 120;
    Dtype dtype = test_between(r, 0, 1) ? DTYPE_BF16 : DTYPE_F32;
    Compute compute = dtype == DTYPE_BF16 ? COMPUTE_BF16 : COMPUTE_F32;
    int threads = test_between(r, 1, 2);
    random_model_init(&w->model, &shape, dtype, false, r);
    random_model_calm(&w->model, 1);
    random_draft_init(&w->eagle_model, &w->model.model, INPUT_PAIRED, 2, r);
    random_draft_init(&w->mtp_model, &w->model.model, INPUT_MTP, 1, r);
    random_draft_init(&w->block_model, &w->model.model, INPUT_BLOCK, 2, r);
    w->captures = (Captures){2, {1, shape.layers - 1}};
    w->last = (Captures){1, {shape.layers}};
    memset(w->sequences, 0, sizeof w->sequences);
    for (int i = 0; i < w->lanes; i++) {
        BatchSequence *s = &w->sequences[i], *first = &w->sequences[0];
        open_one(w, &s->target, &w->model.model, compute, threads, &first->target);
        open_one(w, &s->draft, &w->model.model, COMPUTE_F32, threads, &first->draft);
        s->draft.shape.mask_token = 1; // for `parallel`
        open_one(w, &s->eagle, &w->eagle_model.model, compute, threads, &first->eagle);
        open_one(w, &s->mtp, &w->mtp_model.model, compute, threads, &first->mtp);
        open_one(w, &s->block, &w->block_model.model, compute, threads, &first->block);
    }
}

void batch_world_close(BatchWorld *w) {
    for (int i = w->lanes; i-- > 0;) {
        session_release(&w->sequences[i].block);
        session_release(&w->sequences[i].mtp);
        session_release(&w->sequences[i].eagle);
        session_release(&w->sequences[i].draft);
        session_release(&w->sequences[i].target);
    }
    random_model_release(&w->block_model);
    random_model_release(&w->mtp_model);
    random_model_release(&w->eagle_model);
    random_model_release(&w->model);
}

void batch_make_prompts(BatchWorld *w, Random *r) {
    int vocab = w->sequences[0].target.shape.real_vocab;
    for (int i = 0; i < w->prompts; i++) {
        bool fills = w->fills && test_between(r, 0, 3) == 0;
        w->count[i] = fills ? BATCH_CONTEXT - test_between(r, 0, 2) : test_between(r, 1, w->most_prompt);
        w->limit[i] = test_between(r, 1, w->most_tokens);
        w->seed[i] = random_bits(r);
        for (int k = 0; k < w->count[i]; k++) {
            bool again = k > 5 && test_between(r, 0, 2);
            w->prompt[i][k] = again ? w->prompt[i][k - test_between(r, 2, 5)] : test_between(r, 0, vocab - 1);
        }
    }
}

static bool open_method(BatchWorld *w, int lane, Error *e) {
    BatchSequence *s = &w->sequences[lane];
    MethodEnv env = {.target = &s->target,
                     .draft = &s->draft,
                     .adapters = {{&s->eagle, 1, s->target.shape.layers, &w->captures, NULL},
                                  {&s->mtp, 1, s->target.shape.layers, &w->last, NULL},
                                  {&s->block, 1, s->target.shape.layers, &w->captures, NULL}},
                     .sampling = w->sampling};
    return method_open(&s->method, w->method, &env, e);
}

static bool make(BatchWorld *w, int lane, int i, Clock clock, DecodeResult *out, Error *e) {
    BatchSequence *s = &w->sequences[lane];
    DecodeOptions o = {.max_tokens = w->limit[i],
                       .sampling = w->sampling,
                       .seed = w->seed[i],
                       .merge = w->seed[i] % 2,
                       .layout = w->seed[i] % 3 ? LAYOUT_TREE : LAYOUT_COPIED,
                       .prefill_chunk = (int)(w->seed[i] % 37),
                       .clock = clock};
    if (i == w->fails) return error_input(e, "prompt %d fails", i);
    return decode(&s->target, &s->method, w->prompt[i], w->count[i], &o, out, e);
}

static bool work(void *state, Lane *lane, Error *e) {
    BatchWorld *w = state;
    int number = lane_number(lane);
    BatchSequence *s = &w->sequences[number];
    bool ok = true;
    lane_take(lane, &s->target, ROLE_TARGET);
    lane_take(lane, &s->draft, 1);
    lane_take(lane, &s->eagle, 2);
    lane_take(lane, &s->block, 3);
    lane_take(lane, &s->mtp, 4);
    while (ok && w->next < w->prompts) {
        int i = w->next++;
        ok = make(w, number, i, lane_clock(lane), &w->got[i], e);
        if (!ok) break;
        const DecodeResult *d = &w->got[i];
        double part = d->propose_s + d->forward_s + d->verify_s + d->observe_s;
        assert_true(d->latency_s >= part); // the others' work lies between
        w->shared += part;
        w->prefill += w->got[i].prefill_s;
        w->made++;
    }
    lane_drop(&s->target);
    lane_drop(&s->draft);
    lane_drop(&s->eagle);
    lane_drop(&s->block);
    lane_drop(&s->mtp);
    return ok;
}

static void make_alone(BatchWorld *w) {
    Error e = {0};
    for (int i = 0; i < w->prompts; i++)
        if (!make(w, 0, i, still_clock(), &w->alone[i], &e)) fail_msg("%s: %s", w->method, e.text);
}

static void compare(BatchWorld *w) {
    for (int i = 0; i < w->prompts; i++) {
        const DecodeResult *want = &w->alone[i], *got = &w->got[i];
        int same = 0;
        while (same < want->tokens && same < got->tokens && want->ids[same] == got->ids[same]) same++;
        if (want->tokens != got->tokens || same < want->tokens || want->steps != got->steps ||
            fabs(want->rows - got->rows) > 0)
            fail_msg(
                "%s, %d lanes, prompt %d: want %d tokens in %d steps of %g rows, got %d (%d the same) in "
                "%d of %g",
                w->method, w->lanes, i, want->tokens, want->steps, want->rows, got->tokens, same, got->steps,
                got->rows);
    }
}

static bool open_methods(BatchWorld *w, Error *e) {
    for (int i = 0; i < w->lanes; i++)
        if (!open_method(w, i, e)) return false;
    return true;
}

void batch_end(BatchWorld *w) {
    for (int i = 0; i < w->lanes; i++) method_close(&w->sequences[i].method);
    for (int i = 0; i < w->prompts; i++) {
        decode_result_release(&w->alone[i]);
        decode_result_release(&w->got[i]);
    }
}

void batch_begin(BatchWorld *w, const char *method, bool sampled) {
    Error e = {0};
    w->method = method;
    w->sampling = (Sampling){.temperature = sampled ? 0.9 : 0, .top_p = 1};
    w->next = w->made = w->asked = w->interrupted = 0;
    w->fails = -1;
    w->ticks = w->shared = w->prefill = 0;
    if (!open_methods(w, &e)) fail_msg("%s: %s", w->method, e.text);
}

bool batch_make_together(BatchWorld *w, Error *e) {
    return batch_run(w->lanes, (Clock){tick, w}, work, w, e);
}

static void check_method(BatchWorld *w, const char *method, bool sampled, Random *r) {
    Error e = {0};
    batch_begin(w, method, sampled);
    batch_make_prompts(w, r);
    make_alone(w);
    if (!batch_make_together(w, &e)) fail_msg("%s: %s", w->method, e.text);
    compare(w);
    assert_true(w->shared > 0 && w->shared + w->prefill <= w->ticks); // no moment is counted twice
    batch_end(w);
}

void batch_same_as_alone(BatchWorld *w, const char *const *methods, int count, bool both, Random *r) {
    for (int i = 0; i < count; i++)
        for (int sampled = 0; sampled < 2; sampled++)
            if (both || sampled == i % 2) check_method(w, methods[i], sampled, r);
}

void batch_build(Session *s, int committed, int nodes, Layout layout, Random *r) {
    int prompt[BATCH_CONTEXT], vocab = s->shape.real_vocab;
    for (int i = 0; i < committed; i++) prompt[i] = test_between(r, 0, vocab - 1);
    session_reset(s);
    assert_true(session_prefill(s, prompt, committed, 0, 0, NULL, NULL));
    session_begin_step(s, true, layout);
    int node = tree_root(&s->tree, test_between(r, 0, vocab - 1));
    while (node != TREE_NONE && s->tree.count < nodes) {
        bool on = test_between(r, 0, 1);
        if (!on) node = layout == LAYOUT_TREE ? 0 : tree_row(&s->tree);
        node = tree_propose(&s->tree, node, test_between(r, 0, vocab - 1));
    }
}
