// Prompt lookup decoding: the last n tokens, n from ngram_max down to ngram_min, are sought in what stands
// before; the tokens that followed them there are proposed as one chain.
//
// The original takes the oldest match and demands a full continuation; the version in Hugging Face 4.37, the
// baseline of Lookahead's Table 3, tries n = 2 and 1 and takes a short one too. A continuation may run into
// the n-gram itself, but never past the end of the sequence.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/suffix.h"

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
    {"ngram_max", ARG_INT, AT(ngram_max), 1, SUFFIX_LONGEST, "3", .help = "longest n-gram, sought first"},
    {"ngram_min", ARG_INT, AT(ngram_min), 1, SUFFIX_LONGEST, "1", .help = "shortest n-gram sought"},
    {"draft", ARG_INT, AT(draft), 1, TREE_MAX_NODES - 1, "10", .help = "tokens proposed"},
    {"match", ARG_CHOICE, AT(match), .fallback = "oldest", .choices = MATCHES,
     .help = "which of several matches"},
    {"allow_short", ARG_FLAG, AT(allow_short), .fallback = "off",
     .help = "take a match that fewer than draft tokens follow"},
    {"preset", ARG_CHOICE, AT(preset), .fallback = "none", .choices = PRESETS,
     .help = "a published setting, in place of all of the above"},
};
#undef AT

static const LookupParams HF_4_37 = {
    .ngram_max = 2, .ngram_min = 1, .draft = 10, .match = MATCH_OLDEST, .allow_short = true};

static const char *const SOURCES[] = {"text"};

typedef struct Lookup {
    LookupParams p;
    Offers offers;     // of the open step: the match's continuation
    SuffixIndex index; // of the whole sequence, prompt and output
} Lookup;

static void lookup_close(void *self) {
    Lookup *l = self;
    if (!l) return;
    suffix_release(&l->index);
    mem_free(l);
}

static void lookup_resolve(void *values) {
    LookupParams *p = values;
    if (p->preset == PRESET_HF_4_37) *p = HF_4_37;
    p->preset = PRESET_NONE;
}

static void *lookup_open(const MethodEnv *env, const void *values, Error *e) {
    (void)env;
    LookupParams p = *(const LookupParams *)values;
    lookup_resolve(&p);
    if (p.ngram_min > p.ngram_max) {
        error_input(e, "'ngram_min' %d is larger than 'ngram_max' %d", p.ngram_min, p.ngram_max);
        return NULL;
    }
    Lookup *l = mem_alloc(1, sizeof *l);
    if (!l) error_system(e, "out of memory");
    if (l) *l = (Lookup){.p = p, .offers = {.names = SOURCES, .source_count = 1}};
    if (l && suffix_init(&l->index, p.ngram_max, e)) return l;
    lookup_close(l);
    return NULL;
}

static bool push_all(Lookup *l, const int *tokens, int count, Error *e) {
    for (int i = 0; i < count; i++)
        if (!suffix_push(&l->index, tokens[i], e)) return false;
    return true;
}

static bool lookup_begin(void *self, const Prompt *prompt, Error *e) {
    Lookup *l = self;
    suffix_clear(&l->index);
    return push_all(l, prompt->tokens, prompt->count, e);
}

static int followers(const Lookup *l, int end) {
    int n = (int)l->index.length - end;
    return n < l->p.draft ? n : l->p.draft;
}

static bool is_usable(const Lookup *l, int end) {
    return end != SUFFIX_NONE &&
           (l->p.allow_short ? followers(l, end) >= 1 : followers(l, end) == l->p.draft);
}

// Older ends have more followers, so all after the first usable one are usable too.
static int newest_usable(const Lookup *l, int n) {
    int end = suffix_newest(&l->index, n);
    while (end != SUFFIX_NONE && !is_usable(l, end)) end = suffix_before(&l->index, n, end);
    return end;
}

static bool same_continuation(const Lookup *l, int a, int b) {
    int n = followers(l, a), m = followers(l, b);
    return n == m && memcmp(l->index.tokens + a, l->index.tokens + b, (size_t)n * sizeof(int)) == 0;
}

// The usable end whose continuation stands most often after the n-gram; the newest of equals. Only the
// newest FREQUENT_LIMIT ends are compared, so that a text of one repeated token stays cheap.
static int most_frequent(const Lookup *l, int n) {
    enum { FREQUENT_LIMIT = 64 };
    int ends[FREQUENT_LIMIT], count = 0, best = SUFFIX_NONE, best_count = 0;
    for (int end = newest_usable(l, n); end != SUFFIX_NONE && count < FREQUENT_LIMIT;
         end = suffix_before(&l->index, n, end))
        ends[count++] = end;
    for (int i = 0; i < count; i++) {
        int equal = 0;
        for (int k = 0; k < count; k++) equal += same_continuation(l, ends[i], ends[k]);
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
    case MATCH_OLDEST: break; // it has the most followers: if it will not do, none will
    }
    int end = suffix_oldest(&l->index, n);
    return is_usable(l, end) ? end : SUFFIX_NONE;
}

// Where nothing matches, the step runs one token, and counts.
static bool lookup_propose(void *self, Tree *tree, Error *e) {
    (void)e;
    Lookup *l = self;
    int end = SUFFIX_NONE;
    for (int n = l->p.ngram_max; n >= l->p.ngram_min && end == SUFFIX_NONE; n--) end = find_match(l, n);
    l->offers.count = 0;
    if (end != SUFFIX_NONE) offer_row(&l->offers, tree, 0, l->index.tokens + end, followers(l, end));
    return true;
}

static bool lookup_observe(void *self, const Observation *seen, Error *e) {
    return push_all(self, seen->emitted, seen->emitted_count, e);
}

static const Offers *lookup_offers(const void *self) { return &((const Lookup *)self)->offers; }

const MethodInfo method_prompt_lookup = {
    .name = "prompt-lookup",
    .summary = "what followed the last tokens when they stood in the text before",
    .params = PARAMS,
    .param_count = sizeof PARAMS / sizeof *PARAMS,
    .param_size = sizeof(LookupParams),
    .resolve = lookup_resolve,
    .open = lookup_open,
    .begin = lookup_begin,
    .propose = lookup_propose,
    .observe = lookup_observe,
    .close = lookup_close,
    .offers = lookup_offers};
