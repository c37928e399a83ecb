// Both models go through a text in step, a few tokens at a time, so that no more than these tokens' logits
// are in memory.
#include "harness/inputs/inputs.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"

#include <math.h>

enum { PART = 32 };

// Runs the next tokens and reads the head at each.
static bool run_part(Session *s, const int *ids, int n, unsigned want, Error *e) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, ids[0]);
    for (int i = 1; i < n; i++) node = tree_probe(&s->tree, node, ids[i], true);
    return session_run(s, s->shape.layers, e) && session_read(s, want, e) && session_commit(s, node, n, e);
}

static double log_of_sum(const float *logits, int vocab) {
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < vocab; i++) most = fmax(most, (double)logits[i]);
    for (int i = 0; i < vocab; i++) sum += exp((double)logits[i] - most);
    return most + log(fmax(sum, 1)); // the largest adds 1
}

static double divergence(const float *p, double log_p, const float *q, double log_q, int vocab) {
    double sum = 0;
    for (int i = 0; i < vocab; i++) {
        double own = (double)p[i] - log_p;
        if (own > -700) sum += exp(own) * (own - ((double)q[i] - log_q));
    }
    return sum;
}

// The prediction at a node of the sessions' steps.
static void add_token(const Session *model, const Session *original, int node, int next, Quality *sum) {
    int vocab = model->shape.real_vocab;
    const float *q = session_logits(model, node);
    double log_q = log_of_sum(q, vocab);
    sum->tokens++;
    sum->loss += log_q - (double)q[next];
    if (!original) return;
    const float *p = session_logits(original, node);
    double log_p = log_of_sum(p, vocab);
    sum->of_original += log_p - (double)p[next];
    sum->divergence += divergence(p, log_p, q, log_q, vocab);
    sum->same += session_argmax(model, node) == session_argmax(original, node);
}

static int least(int a, int b) { return a < b ? a : b; }

static bool add_piece(Session *model, Session *original, const int *ids, int n, Quality *sum, Error *e) {
    session_reset(model);
    if (original) session_reset(original);
    for (int at = 0; at + 1 < n; at += PART) {
        int count = least(PART, n - 1 - at);
        if (!run_part(model, ids + at, count, HEAD_LOGITS, e) ||
            (original && !run_part(original, ids + at, count, HEAD_LOGITS, e)))
            return false;
        for (int i = 0; i < count; i++) add_token(model, original, i, ids[at + i + 1], sum);
    }
    return true;
}

bool quality_text(Engine *model, Engine *original, const int *ids, int n, Quality *sum, Error *e) {
    int most = model->session.context;
    if (original) most = least(most, original->session.context);
    sum->texts++;
    for (int at = 0; at + 1 < n; at += most)
        if (!add_piece(&model->session, original ? &original->session : NULL, ids + at, least(most, n - at),
                       sum, e))
            return false;
    return true;
}

// --- greedy outputs

static bool write_on(Engine *original, const int *prompt, int n, int most, DecodeResult *out, Error *e) {
    LOCAL(method_close) Method method = {0};
    MethodEnv env = {.target = &original->session};
    DecodeOptions o = {.max_tokens = most,
                       .eos = original->model.eos,
                       .eos_count = original->model.eos_count,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .clock = clock_monotonic()};
    return method_open(&method, "autoregressive", &env, e) &&
           decode(&original->session, &method, prompt, n, &o, out, e);
}

// The model's choices along the n + count tokens; those of the output are compared.
static bool follow(Session *s, const int *ids, int n, int count, Quality *sum, Error *e) {
    bool unbroken = true;
    session_reset(s);
    for (int at = 0; at < n + count - 1; at += PART) {
        int part = least(PART, n + count - 1 - at);
        if (!run_part(s, ids + at, part, 0, e)) return false;
        for (int i = 0; i < part; i++) {
            if (at + i + 1 < n) continue;
            bool same = session_argmax(s, i) == ids[at + i + 1];
            unbroken = unbroken && same;
            sum->greedy++;
            sum->greedy_same += same;
            sum->unbroken += unbroken;
        }
    }
    return true;
}

bool quality_greedy(Engine *model, Engine *original, const int *prompt, int n, int most, Quality *sum,
                    Error *e) {
    LOCAL(decode_result_release) DecodeResult out = {0};
    int room = least(model->session.context, original->session.context) - n;
    if (least(most, room) < 1) return true;
    if (!write_on(original, prompt, n, least(most, room), &out, e)) return false;
    LOCAL_MEMORY int *ids = mem_new((size_t)(n + out.tokens), sizeof *ids);
    for (int i = 0; i < n + out.tokens; i++) ids[i] = i < n ? prompt[i] : out.ids[i - n];
    return follow(&model->session, ids, n, out.tokens, sum, e);
}

// --- both

bool quality_comparable(const Engine *model, const Engine *original, Error *e) {
    int own = model->model.shape.real_vocab, theirs = original->model.shape.real_vocab;
    if (own != theirs)
        return error_input(e,
                           "the models have vocabularies of %d and %d: give the one that the other was "
                           "quantised from",
                           own, theirs);
    return engine_same_vocabulary(original, model, e);
}

void quality_add(Quality *sum, const Quality *part) {
    sum->texts += part->texts;
    sum->tokens += part->tokens;
    sum->loss += part->loss;
    sum->of_original += part->of_original;
    sum->divergence += part->divergence;
    sum->same += part->same;
    sum->greedy += part->greedy;
    sum->greedy_same += part->greedy_same;
    sum->unbroken += part->unbroken;
}
