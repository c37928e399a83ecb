// See switch.h. Invariants (switch_check): a waiting draft's right tokens are a path from its text to `node`,
// and are followed by a token; weights of means are at most FADE.
#include "engine/decode/switch.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { NOWHERE = -1, FADE = 64, EXPLORE = 16, PRIOR = 2, HOPE = 3 };

static void switch_check(const Switch *s) {
    assert(s->waiting_count >= 0 && s->waiting_count <= SWITCH_WAITING);
    assert(s->bucket >= 0 && s->bucket < SWITCH_BUCKETS && s->rest.weight <= FADE);
    for (int i = 0; i < s->waiting_count; i++)
        assert(s->waiting[i].node < s->waiting[i].count &&
               (s->waiting[i].node >= 0) == (s->waiting[i].right > 0));
    (void)s; // without asserts
}

void switch_init(Switch *s, const SwitchParams *p) {
    *s = (Switch){.p = *p, .tokens = {1, 1}, .price = {1, 1}};
    switch_check(s);
}

void switch_begin(Switch *s) { s->waiting_count = 0; }

// --- means

static void add(Mean *m, double x) {
    double keep = m->weight > FADE - 1 ? (FADE - 1) / m->weight : 1;
    m->sum = m->sum * keep + x;
    m->weight = m->weight * keep + 1;
}

// The mean as if `prior` had come PRIOR times before.
static double with_prior(const Mean *m, double prior) {
    return (m->sum + PRIOR * prior) / (m->weight + PRIOR);
}

static double mean(const Mean *m, double none) { return m->weight > 0 ? m->sum / m->weight : none; }

// --- buckets: no draft, then by score and match

static int bucket_of(const Outlook *o) {
    static const double SCORES[] = {0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    enum { SCORE_KINDS = sizeof SCORES / sizeof *SCORES + 1, MATCH_KINDS = 3 };
    _Static_assert(1 + SCORE_KINDS * MATCH_KINDS <= SWITCH_BUCKETS, "each has a bucket");
    int score = 0, match = o->match >= 8 ? 2 : o->match >= 4 ? 1 : 0;
    if (o->count == 0) return 0;
    while (score + 1 < SCORE_KINDS && o->score > SCORES[score]) score++;
    return 1 + score * MATCH_KINDS + match;
}

// --- choosing

static int choose_learned(Switch *s, const Outlook *o, bool both_fit) {
    SwitchBucket *b = &s->buckets[s->bucket];
    double truth = (s->right.sum + PRIOR) / (s->score.sum + PRIOR);
    // The right tokens to expect of the first method, of the rest, of both.
    double first = o->count ? with_prior(&b->first, o->score * truth) : 0;
    double rest = with_prior(&b->rest, with_prior(&s->rest, HOPE));
    double both_tokens = rest + with_prior(&b->gain, fmax(first - rest, 0));
    bool both = s->p.both && both_fit && o->count > 0;
    double rate = mean(&s->tokens, 1) / mean(&s->price, 1);
    double others = (both ? both_tokens : rest) - rate * s->p.cost;
    bool explore = b->left_out >= fmin(b->rest.weight, EXPLORE);
    if (first >= others && !explore) return DRAFT_FIRST;
    return both ? DRAFT_FIRST | DRAFT_REST : DRAFT_REST;
}

static int choose(Switch *s, const Outlook *o, bool both_fit) {
    switch (s->p.rule) {
    case SWITCH_MATCH: return o->count && o->match >= s->p.threshold ? DRAFT_FIRST : DRAFT_REST;
    case SWITCH_SCORE: return o->count && o->score >= s->p.threshold ? DRAFT_FIRST : DRAFT_REST;
    case SWITCH_LEARNED: return choose_learned(s, o, both_fit);
    case SWITCH_OFF: break;
    }
    return DRAFT_FIRST | DRAFT_REST;
}

static void wait_for(Switch *s, const Outlook *o) {
    if (s->waiting_count == SWITCH_WAITING) // forgets the oldest
        memmove(s->waiting, s->waiting + 1, (size_t)--s->waiting_count * sizeof *s->waiting);
    Waiting *w = &s->waiting[s->waiting_count++];
    w->bucket = s->bucket;
    w->node = NOWHERE;
    w->right = 0;
    w->rest = -1;
    w->score = o->score;
    w->count = o->count < SWITCH_DRAFT_MOST ? o->count : SWITCH_DRAFT_MOST;
    for (int i = 0; i < w->count; i++) {
        w->token[i] = o->token[i];
        w->parent[i] = o->parent ? o->parent[i] : i - 1;
    }
}

int switch_choose(Switch *s, const Outlook *first, bool both_fit) {
    s->bucket = bucket_of(first);
    s->chosen = choose(s, first, both_fit);
    if (s->p.rule == SWITCH_LEARNED) wait_for(s, first);
    switch_check(s);
    return s->chosen;
}

// --- learning

static int child_of(const Waiting *w, int node, int token) {
    for (int i = node + 1; i < w->count; i++)
        if (w->parent[i] == node && (token == NOWHERE || w->token[i] == token)) return i;
    return NOWHERE;
}

// Whether the draft's right tokens are known: a token differed, or there are no more.
static bool follow(Waiting *w, const int *tokens, int count) {
    for (int i = 0; i < count; i++) {
        int next = child_of(w, w->node, tokens[i]);
        if (next == NOWHERE) return true;
        w->node = next;
        w->right++;
    }
    return child_of(w, w->node, NOWHERE) == NOWHERE;
}

static void learn_rest(Switch *s, int rest) {
    SwitchBucket *b = &s->buckets[s->bucket];
    if (rest < 0) {
        b->left_out++;
        return;
    }
    b->left_out = 0;
    add(&b->rest, rest);
    add(&s->rest, rest);
    s->waiting[s->waiting_count - 1].rest = rest;
}

void switch_observe(Switch *s, const int *tokens, int count, int rest) {
    if (s->p.rule != SWITCH_LEARNED) return;
    int left = 0;
    learn_rest(s, rest);
    add(&s->tokens, count);
    add(&s->price, 1 + (rest >= 0 ? s->p.cost : 0));
    for (int i = 0; i < s->waiting_count; i++) {
        Waiting *w = &s->waiting[i];
        if (!follow(w, tokens, count)) {
            s->waiting[left++] = *w;
            continue;
        }
        SwitchBucket *b = &s->buckets[w->bucket];
        add(&b->first, w->right);
        add(&s->right, w->right);
        add(&s->score, w->score);
        if (w->rest >= 0) add(&b->gain, w->right > w->rest ? w->right - w->rest : 0);
    }
    s->waiting_count = left;
    switch_check(s);
}
