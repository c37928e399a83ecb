#include "tests/support/null_session.h"

#include "engine/null/null.h"
#include "tests/support/check.h"

#include <string.h>

void null_session_open(Session *s, const NullSetup *setup) {
    Model model = {.shape = {.input = setup->input,
                             .layers = NULL_LAYERS,
                             .width = NULL_WIDTH,
                             .vocab = setup->vocab,
                             .real_vocab = setup->vocab - setup->masked,
                             .context = setup->context,
                             .window = setup->window,
                             .mask_token = setup->mask,
                             .tokens = setup->tokens,
                             .states = setup->input >= INPUT_PAIRED ? NULL_STATES : 0}};
    if (setup->input == INPUT_BLOCK) {
        model.shape.block = (BlockDraft){5, true, MARKOV_VANILLA, 2, CONFIDENCE_ROW};
        model.shape.mask_token = 1;
    }
    BackendOptions o = {.max_nodes = setup->max_nodes, .slack = 16};
    void *self;
    Error e = {0};
    if (!null_open(&model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &null_backend, self, &model.shape, &o);
}

void null_adapters_open(NullAdapters *a, const NullSetup *setup) {
    static const InputKind inputs[ADAPTER_SETS] = {INPUT_HIDDEN, INPUT_HIDDEN, INPUT_FUSED,
                                                   INPUT_PAIRED, INPUT_MTP,    INPUT_BLOCK};
    NullSetup own = *setup;
    *a = (NullAdapters){.captures = {NULL_STATES, {2, 1}}, .last = {1, {NULL_LAYERS}}};
    for (int i = 0; i < ADAPTER_SETS; i++) {
        own.input = inputs[i];
        null_session_open(&a->sessions[i], &own);
    }
}

void null_adapters_close(NullAdapters *a) {
    for (int i = 0; i < ADAPTER_SETS; i++) session_release(&a->sessions[i]);
}

void null_adapters_give(NullAdapters *a, MethodEnv *env) {
    for (int i = 0; i < ADAPTER_SETS; i++) {
        InputKind input = a->sessions[i].shape.input;
        const Captures *captures = input >= INPUT_PAIRED ? &a->captures
                                   : input == INPUT_MTP  ? &a->last
                                                         : NULL;
        env->adapters[i] = (AdapterSet){
            .sessions = &a->sessions[i], .count = 1, .layer = i ? NULL_LAYERS : 1, .captures = captures};
    }
}

static int step(Session *s, int token, float *logits) {
    session_begin_step(s, true, LAYOUT_TREE);
    int root = tree_root(&s->tree, token);
    assert_true(session_run(s, s->shape.layers, NULL));
    assert_true(session_read(s, logits ? HEAD_ARGMAX | HEAD_LOGITS : HEAD_ARGMAX, NULL));
    if (logits) memcpy(logits, session_logits(s, root), (size_t)s->shape.vocab * sizeof *logits);
    assert_true(session_commit(s, root, 1, NULL));
    return session_argmax(s, root);
}

void slow_greedy(Session *s, const int *prompt, int prompt_count, int count, int *out) {
    session_reset(s);
    for (int i = 0; i < prompt_count - 1; i++) step(s, prompt[i], NULL);
    for (int i = 0, last = prompt[prompt_count - 1]; i < count; i++) out[i] = last = step(s, last, NULL);
}

int slow_next(Session *s, const int *sequence, int length, float *logits) {
    session_reset(s);
    for (int i = 0; i < length - 1; i++) step(s, sequence[i], NULL);
    return step(s, sequence[length - 1], logits);
}

enum { SLOW_VOCAB = 64, SLOW_LENGTH = 64 };

void slow_chances(Session *s, const Sampling *sampling, const int *sequence, int length, double *p) {
    float logits[SLOW_VOCAB], rounded[SLOW_VOCAB];
    Sampler sampler;
    int vocab = s->shape.vocab;
    assert_true(vocab <= SLOW_VOCAB);
    slow_next(s, sequence, length, logits);
    sampler_init(&sampler, sampling, vocab);
    sampler_distribution(&sampler, logits, rounded);
    sampler_release(&sampler);
    for (int i = 0; i < vocab; i++) p[i] = (double)rounded[i];
}

void slow_pair_chances(Session *s, const Sampling *sampling, const int *prompt, int count, double *p) {
    int sequence[SLOW_LENGTH], vocab = s->shape.vocab;
    double first[SLOW_VOCAB];
    assert_true(count < SLOW_LENGTH);
    memcpy(sequence, prompt, (size_t)count * sizeof *prompt);
    slow_chances(s, sampling, sequence, count, first);
    for (int a = 0; a < vocab; a++) {
        double *row = p + (ptrdiff_t)a * vocab;
        sequence[count] = a;
        slow_chances(s, sampling, sequence, count + 1, row);
        for (int b = 0; b < vocab; b++) row[b] *= first[a];
    }
}

static double no_time(void *state) {
    (void)state;
    return 0;
}

Clock still_clock(void) { return (Clock){no_time, NULL}; }

static bool ends(const DecodeOptions *o, int token) {
    for (int i = 0; i < o->eos_count; i++)
        if (o->eos[i] == token) return true;
    return false;
}

void slow_check_greedy(Session *slow, const int *prompt, int prompt_count, const DecodeOptions *o,
                       const DecodeResult *out) {
    int room = slow->context - prompt_count, most = o->max_tokens < room ? o->max_tokens : room, want[4096];
    assert_true(most <= 4096);
    slow_greedy(slow, prompt, prompt_count, most, want);
    for (int i = 0; i < most; i++)
        if (ends(o, want[i])) most = i + 1;
    assert_int_equal(out->tokens, most);
    for (int i = 0; i < most; i++)
        if (out->ids[i] != want[i]) fail_msg("token %d is %d, want %d", i, out->ids[i], want[i]);
}
