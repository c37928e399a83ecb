// Prompt lookup decoding: finds the last n tokens, n from ngram_max down to ngram_min, earlier in the
// sequence, and proposes the tokens that followed them there as one chain.
//
// The original takes the oldest match and demands a full continuation; the version in Hugging Face 4.37, the
// baseline of Lookahead's Table 3, tries n = 2 and 1 and accepts a short continuation too. A continuation may
// run into the n-gram itself, but never past the end of the sequence.
//
// Invariant between steps: the index holds the whole sequence, prompt and output.
#include "engine/decode/methods/methods.h"

#include "engine/decode/structures/suffix.h"

#include <assert.h>
#include <string.h>

typedef enum { MATCH_OLDEST, MATCH_NEWEST, MATCH_FREQUENT } Match;
typedef enum { PRESET_NONE, PRESET_HF_4_37 } Preset;

typedef struct LookupParams {
    int ngram_max, ngram_min, draft;
    int match;
    bool allow_short;
    int preset;
} LookupParams;

static const char *const MATCHES[] = {"oldest", "newest", "frequent", NULL};
static const char *const PRESETS[] = {"none", "hf-4.37", NULL};

#define AT(name) offsetof(LookupParams, name)
static const Arg PARAMS[] = {
    {"ngram_max", ARG_INT, AT(ngram_max), 1, SUFFIX_LONGEST, "3", .help = "longest n-gram, tried first"},
    {"ngram_min", ARG_INT, AT(ngram_min), 1, SUFFIX_LONGEST, "1", .help = "shortest n-gram tried"},
    {"draft", ARG_INT, AT(draft), 1, TREE_MAX_NODES - 1, "10", .help = "tokens proposed"},
    {"match", ARG_CHOICE, AT(match), .fallback = "oldest", .choices = MATCHES,
     .help = "which of several matches"},
    {"allow_short", ARG_FLAG, AT(allow_short), .fallback = "off",
     .help = "accept a match with fewer than draft tokens after it"},
    {"preset", ARG_CHOICE, AT(preset), .fallback = "none", .choices = PRESETS,
     .help = "a published setting of all of the above"},
};

static const LookupParams HF_4_37 = {
    .ngram_max = 2, .ngram_min = 1, .draft = 10, .match = MATCH_OLDEST, .allow_short = true};

static const char *const SOURCES[] = {"text", NULL};

typedef struct Lookup {
    LookupParams p;
    Sources sources; // of the open step: the match's continuation
    SuffixIndex index;
} Lookup;

static void lookup_close(void *self) { suffix_release(&((Lookup *)self)->index); }

static void lookup_resolve(void *values) {
    LookupParams *p = values;
    if (p->preset == PRESET_HF_4_37) *p = HF_4_37;
    p->preset = PRESET_NONE;
}

static bool lookup_open(void *self, UNUSED const MethodEnv *env, Error *e) {
    Lookup *l = self;
    LookupParams *p = &l->p;
    lookup_resolve(p);
    if (p->ngram_min > p->ngram_max)
        return error_input(e, "'ngram_min' %d is larger than 'ngram_max' %d", p->ngram_min, p->ngram_max);
    suffix_init(&l->index, p->ngram_max);
    return true;
}

static bool lookup_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    Lookup *l = self;
    suffix_clear(&l->index);
    for (int i = 0; i < prompt->count; i++) suffix_push(&l->index, prompt->tokens[i]);
    return true;
}

static int followers(const Lookup *l, int end) {
    int n = (int)l->index.length - end;
    return n < l->p.draft ? n : l->p.draft;
}

static bool is_usable(const Lookup *l, int end) {
    return end != SUFFIX_NONE &&
           (l->p.allow_short ? followers(l, end) >= 1 : followers(l, end) == l->p.draft);
}

// Older ends have more followers, so every end after the first usable one is usable too.
static int newest_usable(const Lookup *l, int n) {
    int end = suffix_newest(&l->index, n);
    while (end != SUFFIX_NONE && !is_usable(l, end)) end = suffix_before(&l->index, n, end);
    return end;
}

// The usable end whose continuation follows the n-gram most often; the newest of equals. Only the newest
// FREQUENT_LIMIT ends are compared, so that a text of one repeated token stays cheap.
static int most_frequent(const Lookup *l, int n) {
    enum { FREQUENT_LIMIT = 64 };
    int ends[FREQUENT_LIMIT], count = 0, best = SUFFIX_NONE, best_count = 0;
    for (int end = newest_usable(l, n); end != SUFFIX_NONE && count < FREQUENT_LIMIT;
         end = suffix_before(&l->index, n, end))
        ends[count++] = end;
    for (int i = 0; i < count; i++) {
        const int *own = l->index.tokens + ends[i];
        int equal = 0, own_count = followers(l, ends[i]);
        for (int k = 0; k < count; k++)
            equal += followers(l, ends[k]) == own_count &&
                     memcmp(own, l->index.tokens + ends[k], (size_t)own_count * sizeof *own) == 0;
        if (equal > best_count) {
            best = ends[i];
            best_count = equal;
        }
    }
    return best;
}

static int find_match(const Lookup *l, int n) {
    switch ((Match)l->p.match) {
    case MATCH_NEWEST: return newest_usable(l, n);
    case MATCH_FREQUENT: return most_frequent(l, n);
    case MATCH_OLDEST: break; // has the most followers: if it is not usable, no other end is
    }
    int end = suffix_oldest(&l->index, n);
    return is_usable(l, end) ? end : SUFFIX_NONE;
}

static void lookup_look(void *self, Outlook *out) {
    const Lookup *l = self;
    int end = SUFFIX_NONE, n = l->p.ngram_max;
    for (; n >= l->p.ngram_min && (end = find_match(l, n)) == SUFFIX_NONE; n--) {}
    assert(end == SUFFIX_NONE || ((size_t)end < l->index.length && followers(l, end) >= 1));
    *out = (Outlook){0};
    if (end == SUFFIX_NONE) return;
    int count = followers(l, end);
    *out = (Outlook){.match = n, .count = count, .score = count, .token = l->index.tokens + end};
}

// Without a match the step runs one token, and counts as a step.
static bool lookup_propose(void *self, Tree *tree, UNUSED Error *e) {
    Lookup *l = self;
    Outlook draft;
    lookup_look(l, &draft);
    l->sources.count = 0;
    if (draft.count) sources_propose(&l->sources, tree, 0, draft.token, draft.count);
    return true;
}

static bool lookup_observe(void *self, const Observation *seen, UNUSED Error *e) {
    Lookup *l = self;
    for (int i = 0; i < seen->emitted_count; i++) suffix_push(&l->index, seen->emitted[i]);
    assert(l->index.length == (size_t)seen->length);
    return true;
}

static void lookup_work(const void *self, StepWork *out) {
    int draft = ((const Lookup *)self)->p.draft;
    *out = (StepWork){.longest = draft + 1, .rows = draft + 1};
}

const MethodInfo method_prompt_lookup = {
    METHOD_ROW(lookup, Lookup),
    .name = "prompt-lookup",
    .summary = "the tokens that followed an earlier occurrence of the last ones",
    .from_text = true,
    .resolve = lookup_resolve,
    .look = lookup_look,
    .may_rest = true};
