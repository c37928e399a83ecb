// A draft computes in use what it computed in training. Blocks, and P-EAGLE's masks, run from the files that
// training wrote: their states are those of the network that learnt, and guesses are its likeliest tokens.
#include "tests/support/check.h"

#include "engine/base/numbers.h"
#include "engine/cpu/cpu.h"
#include "engine/decode/decode.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/world.h"

#include <math.h>
#include <string.h>

// A block in use, from the files that training wrote: its final states are those of the network that learnt.
static void check_use(const Trainer *t, const Adapter *a, const int *tokens, int begin, int rows) {
    BackendOptions o = {.compute = COMPUTE_F32, .max_nodes = PASS, .threads = 1};
    const int nodes[] = {0, 1, 2, 3};
    const float *want = t->networks[0].out_normed + begin * 32;
    float got[4 * 32];
    Session s;
    Error e = {0};
    void *self;
    if (!cpu_open(&a->models[0], &o, &self, &e)) fail_msg("%s", e.text);
    session_init(&s, &cpu_backend, self, &a->models[0].shape, &o);
    assert_true(!begin || session_prefill_hidden(&s, tokens, begin, t->target.exits, &e));
    session_begin_block(&s, rows, tokens[begin]);
    assert_true(session_run(&s, s.shape.layers, &e));
    assert_true(session_get_hidden(&s, nodes, rows, HIDDEN_NORMED, got, &e));
    for (int i = 0; i < rows * 32; i++)
        if (!(fabsf(got[i] - want[i]) < 2e-3f * (1 + fabsf(want[i]))))
            fail_msg("block at %d: number %d of row %d is %g in use, %g in training (seed %llu)", begin,
                     i % 32, i / 32, (double)got[i], (double)want[i], (unsigned long long)test_seed());
    session_release(&s);
}

// Trained on text of 12 tokens in blocks of 1, 4, 4 and 3.
static void training_is_use(void **state) {
    enum { TEXT = 12 };
    static const int begin[TEXT] = {0, 1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9}, start[TEXT] = {0};
    Random r = test_random(11);
    World w;
    Corpus corpus;
    Adapter a;
    AdapterKind kind = world_kind(ADAPTER_DFLASH);
    const char *dir = folder_path(*state, "used");
    int tokens[TEXT], masked[TEXT], targets[TEXT];
    size_t places[TEXT];
    Batch b;
    Error e = {0};
    Trainer t = world_export(&w, &corpus, &kind, dir, &r);
    Network *n = &t.networks[0];
    if (!adapter_open(&a, w.choice.model, dir, &e)) fail_msg("%s", e.text);
    for (size_t i = 0; i < n->parameters.total; i++) n->weights[i] = bf16_to_f32(f32_to_bf16(n->weights[i]));
    for (int i = 0; i < TEXT; i++) {
        tokens[i] = test_between(&r, 0, LEARNER_VOCAB - 1);
        masked[i] = begin[i] == i ? tokens[i] : kind.mask;
        places[i] = NO_PLACE;
    }
    assert_true(target_run(&t.target, tokens, start, places, TEXT, &e));
    target_batch(&t.target, 0, tokens, start, TEXT, targets, &b);
    b.text = tokens;
    b.tokens = masked;
    b.blocks = begin;
    network_loss(n, &b);
    if (!n->kernels->rounds_to_bf16) {
        check_use(&t, &a, tokens, 1, 4);
        check_use(&t, &a, tokens, 5, 4);
    }
    adapter_close(&a);
    trainer_close(&t);
    corpus_release(&corpus);
    world_close(&w);
}

// P-EAGLE's draft in use, by the method that runs it, and its network that learns from the same text.
typedef struct Use {
    Session target, draft;
    Network *n;
    int steps, row[PASS], guess[PASS][4]; // of each step: the row behind which it guesses, and its chain
} Use;

static void open_session(Session *s, const Model *m) {
    BackendOptions o = {.compute = COMPUTE_F32, .max_nodes = PASS, .threads = 1};
    Error e = {0};
    void *self;
    if (!cpu_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cpu_backend, self, &m->shape, &o);
}

// The row of token and states in front of the root's place: the root is at `context`.
static void see_guesses(void *state, const StepReport *r) {
    Use *u = state;
    const Tree *t = &u->target.tree;
    u->row[u->steps] = r->context - 1;
    for (int i = 1; i < 4; i++) u->guess[u->steps][i] = i < t->count ? t->token[i] : -1;
    u->steps++;
}

// The likeliest token of a row of a forward, and how much likelier than `other` it is.
static int likeliest_of(const Use *u, int forward, int row, int other, float *ahead) {
    const Network *n = u->n;
    const float *out = n->forwards[forward].out + row * 32,
                *norm = n->weights + n->parameters.at[W_FINAL_NORM];
    float logits[LEARNER_VOCAB], inverse = n->forwards[forward].out_inverse[row];
    int best = 0;
    for (int v = 0; v < LEARNER_VOCAB; v++) {
        logits[v] = 0;
        for (int i = 0; i < 32; i++) logits[v] += n->head[v * 32 + i] * out[i] * inverse * norm[i];
        if (logits[v] > logits[best]) best = v;
    }
    *ahead = logits[best] - logits[other];
    return best;
}

// The states of a row and of the masks below it, as the method runs them, are those of the forwards' outputs.
static void same_outputs(Use *u, const Adapter *a, const float *exits, const int *tokens, int row) {
    Session *s = &u->draft;
    Error e = {0};
    float got[32];
    session_reset(s);
    assert_true(!row || session_prefill_hidden(s, tokens + 1, row, exits, &e));
    session_begin_step(s, false, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[row + 1]);
    assert_true(session_set_hidden(s, node, 1, exits + row * 96, &e));
    for (int f = 1; f < 3; f++) {
        node = tree_probe(&s->tree, node, s->shape.mask_token, false);
        assert_true(session_set_hidden(s, node, 1, a->mask_states, &e));
    }
    assert_true(session_run(s, s->shape.layers, &e));
    for (int f = 0; f < 3; f++) {
        const float *want = u->n->forwards[f].out + row * 32;
        assert_true(session_get_hidden(s, &f, 1, HIDDEN_RAW, got, &e));
        for (int i = 0; i < 32; i++)
            if (!(fabsf(got[i] - want[i]) < 2e-3f * (1 + fabsf(want[i]))))
                fail_msg("row %d, forward %d: number %d is %g in use, %g in training (seed %llu)", row, f, i,
                         (double)got[i], (double)want[i], (unsigned long long)test_seed());
    }
}

// The text that a P-EAGLE draft of random weights helped to write is one document of a pass: in each step the
// guesses are the likeliest tokens of the forwards, in the row that the step begins with.
static void masks_are_use(void **state) {
    enum { PROMPT = 5, TEXT = LONGEST };
    Random r = test_random(13);
    World w;
    Corpus corpus;
    Adapter a;
    Method m;
    DecodeResult out;
    AdapterKind kind = world_kind(PARALLEL);
    Shape shape = world_small_shape();
    Error e = {0};
    Output files = {0};
    Use u = {0};
    int tokens[TEXT], targets[TEXT], start[TEXT] = {0}, seen = 0;
    size_t places[TEXT];
    Batch b;
    const char *dir = folder_path(*state, "parallel");
    world_open(&w, &shape, &kind, &r);
    learner_corpus(&corpus, 20, 90, 2);
    TrainConfig c = world_config(&w, 5);
    c.pass = PASS;
    Trainer t = world_trainer(&c, &corpus);
    Network *n = u.n = t.networks;
    for (size_t i = 0; i < n->parameters.total; i++)
        n->weights[i] = bf16_round((float)(random_uniform(&r) - 0.5));
    if (!export_adapter(&t, &(ExportNotes){.held_out_loss = NAN}, dir, &files, &e)) fail_msg("%s", e.text);
    output_release(&files);
    if (!adapter_open(&a, w.choice.model, dir, &e)) fail_msg("%s", e.text);
    open_session(&u.target, w.choice.model);
    open_session(&u.draft, a.models);
    MethodEnv env = {.target = &u.target,
                     .adapters = {{&u.draft, 1, 4, &a.captures, a.draft_ids, a.mask_states, false}},
                     .sampling = {.top_p = 1}};
    DecodeOptions o = {.max_tokens = TEXT - PROMPT,
                       .sampling = {.top_p = 1},
                       .clock = still_clock(),
                       .step = see_guesses,
                       .state = &u};
    for (int i = 0; i < PROMPT; i++) tokens[i] = test_between(&r, 0, LEARNER_VOCAB - 1);
    if (!method_open(&m, "eagle3:top=1,depth=2", &env, &e)) fail_msg("%s", e.text);
    if (!decode(&u.target, &m, tokens, PROMPT, &o, &out, &e)) fail_msg("%s", e.text);
    memcpy(tokens + PROMPT, out.ids, (TEXT - PROMPT) * sizeof *tokens);
    for (int i = 0; i < TEXT; i++) places[i] = NO_PLACE;
    assert_true(target_run(&t.target, tokens, start, places, TEXT, &e));
    target_batch(&t.target, 0, tokens, start, TEXT, targets, &b);
    network_loss(n, &b);
    for (int i = 0; i < u.steps && !n->kernels->rounds_to_bf16; i++)
        for (int f = 0; f < 3; f++) {
            int guess = u.guess[i][f + 1];
            float ahead;
            if (guess < 0) continue;
            int want = likeliest_of(&u, f, u.row[i], guess, &ahead);
            if (ahead > 1e-2f)
                fail_msg("step %d guesses %d at depth %d, the forward %d (seed %llu)", i, guess, f + 1, want,
                         (unsigned long long)test_seed());
            seen++;
        }
    if (!n->kernels->rounds_to_bf16) {
        assert_true(seen > 50);
        same_outputs(&u, &a, t.target.exits, tokens, 0);
        same_outputs(&u, &a, t.target.exits, tokens, 17);
    }
    method_close(&m);
    decode_result_release(&out);
    session_release(&u.target);
    session_release(&u.draft);
    adapter_close(&a);
    trainer_close(&t);
    corpus_release(&corpus);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(training_is_use, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(masks_are_use, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
