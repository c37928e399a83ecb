// The cost of the methods themselves: a step's time without the backends', with the vocabulary of a 7B model
// and every method's published setting, on text that repeats itself so that pools fill and guesses are
// accepted.
//
// Printed as a table, with a step of 4 ms for comparison: the 13.5 GB of a 7B model's bf16 weights at 3.35
// TB/s, an H100's. A method that reads only text may cost at most a hundredth of that. For others the bound
// is loose, since a test shares its machine: a hundredth of such a model's step on a processor, 135 ms at 100
// GB/s.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"

#include "engine/decode/structures/datastore.h"
#include "engine/decode/decode.h"
#include "engine/null/null.h"

#include <stdio.h>
#include <string.h>

enum {
    VOCAB = 32000,
    FEW = 24, // ids that the model outputs if text should repeat itself
    CONTEXT = 1200,
    PROMPT = 500,
    TOKENS = 400,
    STORE = 1000000,
    HEADS = 4,
    MOST_STEPS = TOKENS + 1
};

// --- a backend whose time is known

typedef struct {
    void *inner;
    double *spent; // seconds in it
} Timed;

static double now(void) { return clock_now(clock_monotonic()); }

static bool timed_run(void *self, const StepRun *run, Error *e) {
    Timed *t = self;
    double start = now();
    bool ok = null_backend.run(t->inner, run, e);
    *t->spent += now() - start;
    return ok;
}

static bool timed_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    Timed *t = self;
    double start = now();
    bool ok = null_backend.head(t->inner, nodes, count, want, out, e);
    *t->spent += now() - start;
    return ok;
}

static bool timed_get(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    Timed *t = self;
    double start = now();
    bool ok = null_backend.get_hidden(t->inner, nodes, count, kind, rows, e);
    *t->spent += now() - start;
    return ok;
}

static bool timed_set(void *self, int first, int count, const float *rows, Error *e) {
    return null_backend.set_hidden(((Timed *)self)->inner, first, count, rows, e);
}

static bool timed_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    return null_backend.commit(((Timed *)self)->inner, nodes, slots, count, e);
}

static void timed_reset(void *self) { null_backend.reset(((Timed *)self)->inner); }

static void timed_report(const void *self, BackendReport *out) {
    null_backend.report(((const Timed *)self)->inner, out);
}

static void timed_close(void *self) {
    null_backend.close(((Timed *)self)->inner);
    test_free(self);
}

static const Backend TIMED = {.name = "timed",
                              .run = timed_run,
                              .head = timed_head,
                              .get_hidden = timed_get,
                              .set_hidden = timed_set,
                              .commit = timed_commit,
                              .reset = timed_reset,
                              .report = timed_report,
                              .close = timed_close};

static void open_session(Session *s, int real_vocab, InputKind input, double *spent) {
    Model model = {.shape = {.input = input,
                             .layers = 32,
                             .width = 16,
                             .vocab = VOCAB,
                             .real_vocab = real_vocab,
                             .context = CONTEXT}};
    BackendOptions o = {.slack = 16};
    Timed *t = test_calloc(1, sizeof *t);
    t->spent = spent;
    assert_true(null_open(&model, &o, &t->inner, NULL));
    session_init(s, &TIMED, t, &model.shape, &o);
}

// --- one method

typedef struct {
    double spent, before;   // in backends, all and when the step began
    double own[MOST_STEPS]; // seconds of each step
    int steps, rows;
} Bill;

static void take_bill(void *state, const StepReport *r) {
    Bill *b = state;
    double whole = r->propose_s + r->forward_s + r->verify_s + r->observe_s;
    b->own[b->steps++] = whole - (b->spent - b->before);
    b->before = b->spent;
    b->rows += r->rows;
}

static void open_bill(void *state, const StepReport *r) {
    (void)r;
    Bill *b = state;
    b->before = b->spent;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    const char *text;
    bool repeats; // the model outputs few ids, so that text repeats itself
    int layer;    // of the adapters
} Setting;

static void check_cost(const Setting *x, const char *store) {
    Session target, draft, adapters[HEADS];
    Bill b = {0};
    Method m;
    DecodeResult out;
    Error e = {0};
    char text[ARG_TEXT_SIZE];
    int prompt[PROMPT], real = x->repeats ? FEW : VOCAB;
    Random r = test_random(76);
    snprintf(text, sizeof text, "%s%s", x->text, strncmp(x->text, "rest", 4) == 0 ? store : "");
    open_session(&target, real, INPUT_TOKENS, &b.spent);
    open_session(&draft, real, INPUT_TOKENS, &b.spent);
    for (int i = 0; i < HEADS; i++) open_session(&adapters[i], real, INPUT_HIDDEN, &b.spent);
    for (int i = 0; i < PROMPT; i++) prompt[i] = test_between(&r, 0, real - 1);
    MethodEnv env = {
        .target = &target,
        .draft = &draft,
        .adapters = {{.sessions = adapters, .count = x->layer == 32 ? HEADS : 1, .layer = x->layer}},
        .sampling = {.top_p = 1}};
    DecodeOptions o = {.max_tokens = TOKENS,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .clock = clock_monotonic(),
                       .prefill = open_bill,
                       .step = take_bill,
                       .state = &b};
    if (!method_open(&m, text, &env, &e)) fail_msg("%s: %s", text, e.text);
    if (!decode(&target, &m, prompt, PROMPT, &o, &out, &e)) fail_msg("%s: %s", text, e.text);
    qsort(b.own, (size_t)b.steps, sizeof *b.own, by_size);
    double median = b.own[b.steps / 2], high = b.own[b.steps * 9 / 10];
    print_message("%-44s %6.1f %6.1f %8.2f%% %6.1f %6.2f\n", x->text, 1e6 * median, 1e6 * high,
                  100 * median / 4e-3, (double)b.rows / b.steps, out.S);
#ifndef __SANITIZE_ADDRESS__                             // its checks take longer than the code they check
    bool only_text = m.info->from_text && x->layer == 1; // a mix with an adapter doesn't
    assert_true(median < 0.01 * (only_text ? 4e-3 : 0.135));
#endif
    decode_result_release(&out);
    method_close(&m);
    session_release(&target);
    session_release(&draft);
    for (int i = 0; i < HEADS; i++) session_release(&adapters[i]);
}

// Text from the model with every tenth token changed: phrases occur often, with many continuations.
static void write_store(const char *path) {
    Session s;
    Random r = test_random(77);
    NullSetup setup = {.vocab = VOCAB, .masked = VOCAB - FEW, .context = CONTEXT};
    int *tokens = test_malloc(STORE * sizeof *tokens), start[] = {1, 2, 3};
    null_session_open(&s, &setup);
    slow_greedy(&s, start, 3, CONTEXT - 3, tokens);
    for (int i = CONTEXT - 3; i < STORE; i++) tokens[i] = tokens[i - CONTEXT + 3];
    for (int i = 0; i < STORE; i++)
        if (test_between(&r, 0, 9) == 0) tokens[i] = test_between(&r, 0, FEW - 1);
    session_release(&s);
    assert_true(datastore_write(path, tokens, STORE, VOCAB, NULL));
    test_free(tokens);
}

static void published_settings(void **state) {
    static const Setting settings[] = {
        {"autoregressive", true, 1},
        {"jacobi:m=8", true, 1},
        {"prompt-lookup:preset=hf-4.37", true, 1},
        {"ngrammys:strategy=context,k=10,w=10", true, 1},
        {"ngrammys:strategy=context,k=25,w=14", true, 1},
        {"lookahead:preset=paper-7b", true, 1},
        {"lookahead:preset=paper-7b,prompt_pool=on", true, 1},
        {"lookahead:preset=readme-7b,mode=reference", true, 1},
        {"speculative:gamma=5", false, 1},
        {"speculative:gamma=5,adaptive=confidence", false, 1},
        {"kangaroo:eta=0.000001", false, 2},
        {"ouroboros:preset=code", true, 1},
        {"ouroboros:preset=readme", true, 1},
        {"ouroboros:preset=cnn-dm-yi", true, 1},
        {"medusa", true, 32},
        {"mix:prompt-lookup+lookahead(W=7,G=7)", true, 1},
        {"mix:kangaroo(eta=0.000001)+prompt-lookup", false, 2},
        {"suffix", true, 1},
        {"suffix:tree=on,warm=on", true, 1},
        {"recycling", true, 1},
        {"ngram-mod", true, 1},
        {"rest:datastore=", true, 1},
        {"rest:longest=2,datastore=", true, 1},
    };
    char path[200];
    snprintf(path, sizeof path, "%s/store", (const char *)*state);
    write_store(path);
    print_message("%-44s %6s %6s %9s %6s %6s\n", "microseconds a step", "median", "90%", "of 4 ms", "rows",
                  "S");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) check_cost(&settings[i], path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(published_settings, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
