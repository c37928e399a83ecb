// REST: retrieval from a datastore of texts (He et al., 2023). Finds the longest end of the sequence, from
// `longest` tokens down to `shortest`, that occurs in the store; counts the continuations there as a trie,
// and proposes the `nodes` most frequent prefixes as a tree.
//
//      store  ... a b | c d ... a b | c e ... a b | f        prefixes: c 2, c d 1, c e 1, f 1
//
// The places of a phrase are neighbours in the store's order, and so are equal continuations: a prefix is a
// range of places, and its children are ranges within that range. Only the ranges of the best prefixes are
// ever scanned. Ties go to the shorter prefix, then to the smaller tokens. If a phrase has more than
// `matches` places, only that many are examined, evenly spread: each costs a cache miss.
//
// The longest phrase is found by bisection, since every end of a phrase in the store is in the store too.
//
// Invariant of `best`: sorted, and a parent comes before its children.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/structures/datastore.h"

#include <assert.h>
#include <string.h>

enum { MOST_PHRASE = 64, MOST_FOLLOWING = 32, MOST_MATCHES = 100000 };

typedef struct RestParams {
    char datastore[ARG_TEXT_SIZE];
    int longest, shortest, draft, nodes, matches;
} RestParams;

#define AT(name) offsetof(RestParams, name)
static const Arg PARAMS[] = {
    {"datastore", ARG_TEXT, AT(datastore), .fallback = "", .help = "a file from 'outpace datasets index'"},
    {"longest", ARG_INT, AT(longest), 1, MOST_PHRASE, "16",
     .help = "most last tokens to look up, tried first"},
    {"shortest", ARG_INT, AT(shortest), 1, MOST_PHRASE, "2", .help = "fewest last tokens to look up"},
    {"draft", ARG_INT, AT(draft), 1, MOST_FOLLOWING, "10", .help = "tokens taken after a match"},
    {"nodes", ARG_INT, AT(nodes), 1, TREE_MAX_NODES - 1, "64", .help = "prefixes proposed"},
    {"matches", ARG_INT, AT(matches), 1, MOST_MATCHES, "1000", .help = "most places examined"},
};

static const char *const SOURCES[] = {"datastore", NULL};

// A prefix of continuations: those in [from, to) begin with it. A parent is always better than its child.
typedef struct Prefix {
    int token, parent; // parent: index in `best`, or TREE_NONE at depth 1
    int depth;
    int from, to;
    bool inner; // has a child among the best
} Prefix;

typedef struct Rest {
    RestParams p;
    Datastore store;
    int recent[MOST_PHRASE]; // (recent_count): the sequence's end
    int recent_count;
    int64_t *places; // (place_count), at most `matches`: where the continuations begin, in their order
    int place_count;
    Prefix *best; // (best_count), at most `nodes`: best first
    int best_count;
    Sources sources;
} Rest;

static void rest_close(void *self) {
    Rest *r = self;
    datastore_close(&r->store);
    MEM_FREE(r->places, r->best);
}

static bool rest_open(void *self, const MethodEnv *env, Error *e) {
    Rest *r = self;
    const RestParams *p = &r->p;
    if (!p->datastore[0])
        return error_input(e, "datastore=FILE is missing: 'outpace datasets index' makes one");
    if (p->shortest > p->longest)
        return error_input(e, "'shortest' %d is larger than 'longest' %d", p->shortest, p->longest);
    if (!datastore_open(&r->store, p->datastore, e)) return false;
    if (r->store.vocab > env->target->shape.vocab)
        return error_input(e, "'%s' has a vocabulary of %d, the model %d: build one with its tokenizer",
                           p->datastore, r->store.vocab, env->target->shape.vocab);
    r->places = mem_new((size_t)p->matches, sizeof *r->places);
    r->best = mem_new((size_t)p->nodes, sizeof *r->best);
    return true;
}

// Keeps the last `longest` tokens of a sequence.
static void remember(Rest *r, const int *sequence, int length) {
    assert(length >= 1);
    r->recent_count = length < r->p.longest ? length : r->p.longest;
    memcpy(r->recent, sequence + length - r->recent_count, (size_t)r->recent_count * sizeof *r->recent);
}

static bool rest_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    remember(self, prompt->tokens, prompt->count);
    return true;
}

// --- continuations of a phrase

static int find(const Rest *r, int n, int *first) {
    return datastore_find(&r->store, r->recent + r->recent_count - n, n, first);
}

// The length of the longest end of the sequence that is in the store; less than `shortest` if none is.
static int longest_match(const Rest *r) {
    int first, low = r->p.shortest - 1,
               high = r->p.longest < r->recent_count ? r->p.longest : r->recent_count;
    while (low < high) {
        int n = high - (high - low) / 2;
        if (find(r, n, &first)) low = n;
        else high = n - 1;
    }
    return low;
}

// Prefetches all continuations before the first is read.
static void take_places(Rest *r, int n) {
    int first, found = find(r, n, &first);
    r->place_count = found < r->p.matches ? found : r->p.matches;
    for (int i = 0; i < r->place_count; i++) {
        int at = first + (int)((int64_t)i * found / r->place_count);
        r->places[i] = (int64_t)r->store.places[at] + n;
        if (r->places[i] < r->store.count) __builtin_prefetch(r->store.tokens + r->places[i]);
    }
}

// Token number `depth` of continuation i, or DATASTORE_BREAK past its end.
static int token_of(const Rest *r, int i, int depth) {
    int64_t at = r->places[i] + depth;
    return at < r->store.count ? r->store.tokens[at] : DATASTORE_BREAK;
}

// --- the best prefixes

// Of two prefixes of the same depth, the one with the earlier range has the smaller tokens.
static bool is_better(const Prefix *x, const Prefix *y) {
    int a = x->to - x->from, b = y->to - y->from;
    if (a != b) return a > b;
    return x->depth != y->depth ? x->depth < y->depth : x->from < y->from;
}

static void keep(Rest *r, const Prefix *p) {
    if (r->best_count == r->p.nodes && !is_better(p, &r->best[r->best_count - 1])) return;
    int at = r->best_count < r->p.nodes ? r->best_count++ : r->best_count - 1;
    for (; at > 0 && is_better(p, &r->best[at - 1]); at--) r->best[at] = r->best[at - 1];
    r->best[at] = *p;
}

// Keeps the ranges of [from, to) that share the next token; a continuation that has ended is in none of them.
static void keep_children(Rest *r, int parent, int depth, int from, int to) {
    for (int end; from < to; from = end) {
        int token = token_of(r, from, depth);
        for (end = from + 1; end < to && token_of(r, end, depth) == token;) end++;
        if (token != DATASTORE_BREAK)
            keep(r, &(Prefix){.token = token, .parent = parent, .depth = depth + 1, .from = from, .to = end});
    }
}

static void rest_check(const Rest *r) {
    assert(r->best_count <= r->p.nodes);
    for (int i = 0; i < r->best_count; i++) {
        const Prefix *p = &r->best[i];
        assert(p->parent < i && p->from < p->to && p->to <= r->place_count);
        assert(i == 0 || !is_better(p, p - 1));
    }
}

// Children come after their parent, so a prefix has its final place when its children are added.
static void choose(Rest *r) {
    assert(r->place_count <= r->p.matches);
    r->best_count = 0;
    keep_children(r, TREE_NONE, 0, 0, r->place_count);
    for (int i = 0; i < r->best_count; i++) {
        Prefix p = r->best[i];
        if (p.depth < r->p.draft) keep_children(r, i, p.depth, p.from, p.to);
    }
    for (int i = 0; i < r->best_count; i++)
        if (r->best[i].parent != TREE_NONE) r->best[r->best[i].parent].inner = true;
    rest_check(r);
}

// If nothing follows the longest match, tries shorter ones.
static bool rest_propose(void *self, Tree *tree, UNUSED Error *e) {
    Rest *r = self;
    r->sources.count = r->best_count = 0;
    for (int n = longest_match(r); n >= r->p.shortest && r->best_count == 0; n--) {
        take_places(r, n);
        choose(r);
    }
    // A row for each of the best without a child: together they are the tree.
    for (int i = 0; i < r->best_count; i++) {
        int row[MOST_FOLLOWING], depth = r->best[i].depth;
        if (r->best[i].inner) continue;
        for (int n = i, k = depth - 1; n != TREE_NONE; n = r->best[n].parent) row[k--] = r->best[n].token;
        sources_propose(&r->sources, tree, 0, row, depth);
    }
    return true;
}

static bool rest_observe(void *self, const Observation *seen, UNUSED Error *e) {
    remember(self, seen->sequence, seen->length);
    return true;
}

static void rest_work(const void *self, StepWork *out) {
    const RestParams *p = &((const Rest *)self)->p;
    *out = (StepWork){.longest = p->draft + 1, .rows = p->nodes + 1};
}

static bool rest_unchanged(const void *self, Error *e) {
    const Rest *r = self;
    return file_is_unchanged(&r->store.view, r->p.datastore, e);
}

const MethodInfo method_rest = {METHOD_ROW(rest, Rest),
                                .name = "rest",
                                .summary = "the tokens that follow the last ones in a datastore of texts",
                                .from_text = true,
                                .needs = NEEDS_FILE,
                                .unchanged = rest_unchanged};
