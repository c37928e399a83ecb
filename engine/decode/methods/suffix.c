// SuffixDecoding (Oliaro et al.): drafts what followed the longest, most frequent earlier occurrences of the
// text's end (suffix_tree.h). Two trees are asked: `local` has the prompt and the output so far; `global` the
// outputs of earlier prompts and of this one, if the method is warm. The draft with the higher expected
// number of right tokens is tried, the local one of equals.
//
// SAM-Decoding (Hu et al.) copies instead: the tokens behind the first place where the text's end occurs
// (pick=first), or behind the first place with room for a whole draft, of a shorter end if need be
// (pick=room). The root isn't copied, since their text doesn't have it yet.
//
// Invariant between steps: `local` holds one text, all of the sequence; `global` ends with the output.
#include "engine/decode/methods/methods.h"

#include "engine/decode/structures/suffix_tree.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct SuffixParams {
    int depth, draft;
    double factor, offset, least;
    bool tree, warm;
    int requests, tokens;
    int pick, bias;
} SuffixParams;

enum { PICK_SCORE, PICK_MATCH, PICK_FIRST, PICK_ROOM };
static const char *const PICKS[] = {"score", "match", "first", "room", NULL};

#define AT(name) offsetof(SuffixParams, name)
static const Arg PARAMS[] = {
    {"depth", ARG_INT, AT(depth), 2, SUFFIX_TREE_DEEPEST, "64", .help = "longest match and draft, together"},
    {"draft", ARG_INT, AT(draft), 1, SUFFIX_DRAFT_MOST, "16", .help = "most tokens proposed"},
    {"factor", ARG_REAL, AT(factor), 0, 100, "1", .help = "tokens proposed for each token that matches"},
    {"offset", ARG_REAL, AT(offset), -100, 100, "0", .help = "tokens proposed besides"},
    {"min_prob", ARG_REAL, AT(least), 0, 1, "0.1",
     .help = "a token's share of the match's occurrences, at least"},
    {"tree", ARG_FLAG, AT(tree), .fallback = "off", .help = "the likeliest tokens; else the likeliest chain"},
    {"warm", ARG_FLAG, AT(warm), .fallback = "off", .help = "draft from earlier outputs, too"},
    {"requests", ARG_INT, AT(requests), 1, 1 << 30, "10000", .help = "outputs kept; the oldest one goes"},
    {"tokens", ARG_INT, AT(tokens), 1, 1 << 30, "1000000",
     .help = "tokens of outputs kept (about 130 bytes each)"},
    {"pick", ARG_CHOICE, AT(pick), .fallback = "score", .choices = PICKS,
     .help = "the best score; the longest match; its first place, or one with room behind it (SAM-Decoding)"},
    {"bias", ARG_INT, AT(bias), 0, SUFFIX_TREE_DEEPEST, "5",
     .help = "pick=match: a match in earlier outputs counts so much less"},
};

enum { OWN_TEXT, ALL_TEXTS };
static const char *const SOURCES[] = {"local", "global", NULL};

typedef struct Suffix {
    SuffixParams p;
    SuffixRule rule;
    bool looked; // the drafts are those of the open step
    SuffixTree local, global;
    size_t dropped, dropped_tokens; // outputs, since the method was opened
    SuffixDraft drafts[2];          // of the open step, by source
    Sources sources;
} Suffix;

static void suffix_close(void *self) {
    Suffix *s = self;
    suffix_tree_release(&s->local);
    suffix_tree_release(&s->global);
}

static bool suffix_open(void *self, UNUSED const MethodEnv *env, Error *e) {
    Suffix *s = self;
    const SuffixParams *p = &s->p;
    if (p->pick >= PICK_FIRST && (p->warm || p->tree))
        return error_input(e, "pick=%s copies from this text, in a chain: 'warm' and 'tree' must be off",
                           PICKS[p->pick]);
    s->rule = (SuffixRule){p->draft, p->factor, p->offset, p->least, p->tree, p->pick == PICK_MATCH};
    if (!p->warm) s->sources.source_count = OWN_TEXT + 1;
    suffix_tree_init(&s->local, p->depth);
    suffix_tree_init(&s->global, p->depth);
    return true;
}

// The running output is one of those kept, and is never dropped.
static void make_room(Suffix *s) {
    while (suffix_tree_texts(&s->global) > 1 && (suffix_tree_texts(&s->global) > (size_t)s->p.requests ||
                                                 suffix_tree_tokens(&s->global) > (size_t)s->p.tokens)) {
        size_t before = suffix_tree_tokens(&s->global);
        suffix_tree_drop(&s->global);
        s->dropped++;
        s->dropped_tokens += before - suffix_tree_tokens(&s->global);
    }
}

static bool suffix_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    Suffix *s = self;
    s->looked = false;
    suffix_tree_clear(&s->local);
    suffix_tree_begin(&s->local);
    for (int i = 0; i < prompt->count; i++) suffix_tree_append(&s->local, prompt->tokens[i]);
    if (s->p.warm) suffix_tree_begin(&s->global);
    make_room(s);
    return true;
}

// Adds the draft below the root, its tokens without a successor as rows.
static void place(Suffix *s, Tree *tree, int source) {
    const SuffixDraft *d = &s->drafts[source];
    int nodes[SUFFIX_DRAFT_MOST];
    bool inner[SUFFIX_DRAFT_MOST] = {false};
    if (d->count == 0) return;
    int root = tree_row(tree);
    for (int i = 0; i < d->count; i++) {
        int parent = d->parent[i] < 0 ? root : nodes[d->parent[i]];
        nodes[i] = parent == TREE_NONE ? TREE_NONE : tree_propose(tree, parent, d->token[i]);
        if (nodes[i] != TREE_NONE && d->parent[i] >= 0) inner[d->parent[i]] = true;
    }
    for (int i = 0; i < d->count; i++)
        if (!inner[i]) sources_record(&s->sources, source, nodes[i]);
}

// A match as it is compared: one in earlier outputs counts less if the longest match is picked.
static int match_of(const Suffix *s, int source) {
    int match = s->drafts[source].match;
    if (source == OWN_TEXT || !s->rule.longest) return match;
    return match > s->p.bias ? match - s->p.bias : 0;
}

static int pick(const Suffix *s) {
    const SuffixDraft *local = &s->drafts[OWN_TEXT], *global = &s->drafts[ALL_TEXTS];
    if (!s->rule.longest) return local->score >= global->score ? OWN_TEXT : ALL_TEXTS;
    if (!global->count || !local->count) return local->count ? OWN_TEXT : ALL_TEXTS;
    return match_of(s, OWN_TEXT) >= match_of(s, ALL_TEXTS) ? OWN_TEXT : ALL_TEXTS;
}

// Where the text's last n tokens first end; before its own end, if they occur there.
static int first_end(const SuffixTree *t, int n) {
    const int *end = t->text + t->text_count - n;
    int at = 0;
    while (memcmp(t->text + at, end, (size_t)n * sizeof *end) != 0) at++;
    return at + n;
}

static void copy(Suffix *s, SuffixDraft *out) {
    const SuffixTree *t = &s->local;
    int known = (int)t->text_count - 1, match = t->known_ends < known ? t->known_ends : known, n = match;
    *out = (SuffixDraft){.match = match};
    if (match == 0) return;
    double wanted = floor(match * s->rule.factor + s->rule.offset + 1e-6);
    int most = wanted < 0 ? 0 : wanted < s->rule.most ? (int)wanted : s->rule.most, from = first_end(t, n);
    while (s->p.pick == PICK_ROOM && n > 1 && known - from <= s->rule.most) from = first_end(t, --n);
    for (; out->count < most && from < known; out->count++) {
        out->token[out->count] = t->text[from++];
        out->parent[out->count] = out->count - 1;
    }
    out->score = out->count;
}

static void draft(Suffix *s) {
    const SuffixTree *l = &s->local;
    if (s->looked) return;
    s->looked = true;
    if (s->p.pick >= PICK_FIRST) {
        copy(s, &s->drafts[OWN_TEXT]);
        return;
    }
    int most = l->depth, have = (int)l->text_count, count = have < most ? have : most;
    const int *context = l->text + have - count;
    suffix_tree_draft(l, context, count, &s->rule, &s->drafts[OWN_TEXT]);
    if (s->p.warm) suffix_tree_draft(&s->global, context, count, &s->rule, &s->drafts[ALL_TEXTS]);
}

static void suffix_look(void *self, Outlook *out) {
    Suffix *s = self;
    draft(s);
    int source = pick(s);
    const SuffixDraft *d = &s->drafts[source];
    *out = (Outlook){match_of(s, source), d->count, d->score, d->token, d->parent};
}

static bool suffix_propose(void *self, Tree *tree, UNUSED Error *e) {
    Suffix *s = self;
    draft(s);
    s->sources.count = 0;
    place(s, tree, pick(s));
    return true;
}

static bool suffix_observe(void *self, const Observation *seen, UNUSED Error *e) {
    Suffix *s = self;
    s->looked = false;
    for (int i = 0; i < seen->emitted_count; i++) {
        suffix_tree_append(&s->local, seen->emitted[i]);
        if (s->p.warm) suffix_tree_append(&s->global, seen->emitted[i]);
    }
    make_room(s);
    assert(suffix_tree_tokens(&s->local) == (size_t)seen->length);
    return true;
}

// How many tokens of outputs are kept.
static void suffix_note(const void *self, StepNote *out) {
    const Suffix *s = self;
    out->pool = (int)suffix_tree_tokens(s->p.warm ? &s->global : &s->local);
}

static void suffix_state(const void *self, Text *out) {
    const Suffix *s = self;
    text_printf(out, "this text %zu tokens, %.1f MB", suffix_tree_tokens(&s->local),
                1e-6 * (double)suffix_tree_bytes(&s->local));
    if (!s->p.warm) return;
    text_printf(out, "; %zu outputs of %zu tokens, %.1f MB; evicted %zu outputs of %zu tokens",
                suffix_tree_texts(&s->global), suffix_tree_tokens(&s->global),
                1e-6 * (double)suffix_tree_bytes(&s->global), s->dropped, s->dropped_tokens);
}

// The text's end matches an earlier one by 1.5 tokens or so, if it matches at all.
static void suffix_work(const void *self, StepWork *out) {
    const SuffixRule *r = &((const Suffix *)self)->rule;
    double guesses = fmin(fmax(0, 1.5 * r->factor + r->offset), r->most);
    *out = (StepWork){.longest = r->most + 1, .rows = guesses + 1};
}

const MethodInfo method_suffix = {
    METHOD_ROW(suffix, Suffix),
    .name = "suffix",
    .summary = "what followed earlier occurrences of the text's end, by their frequency (SuffixDecoding)",
    .from_text = true,
    .look = suffix_look,
    .may_rest = true,
    .note = suffix_note,
    .state = suffix_state};
