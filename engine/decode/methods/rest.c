// REST: retrieval from a datastore of texts (He et al., 2023). The longest end of the sequence that stands
// somewhere in the store is sought, from `longest` tokens down to `shortest`; what follows it there is
// counted as a trie, and the `nodes` most frequent prefixes are proposed as a tree.
//
//      store  ... a b | c d ... a b | c e ... a b | f        prefixes: c 2, c d 1, c e 1, f 1
//
// Places of one phrase are neighbours in the store's order, and so are equal continuations: the trie is built
// in one sweep, each continuation sharing nodes with the one before only. Ties go to the shorter prefix, then
// to the smaller tokens. Of a phrase with more than `matches` places, so many are looked at, evenly spread:
// a place costs a cache miss or two.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/datastore.h"

#include <string.h>

enum { MOST_PHRASE = 64, MOST_FOLLOWING = 32, MOST_MATCHES = 100000 };

typedef struct RestParams {
    char datastore[PARAM_TEXT_SIZE];
    int longest, shortest, draft, nodes, matches;
} RestParams;

#define AT(name) offsetof(RestParams, name)
static const Param PARAMS[] = {
    {"datastore", PARAM_TEXT, AT(datastore), 0, 0,                  "",     NULL, "file that 'outpace datastore build' wrote"},
    {"longest",   PARAM_INT,  AT(longest),   1, MOST_PHRASE,        "16",   NULL, "last tokens that are sought first"        },
    {"shortest",  PARAM_INT,  AT(shortest),  1, MOST_PHRASE,        "2",    NULL, "last tokens that are sought last"         },
    {"draft",     PARAM_INT,  AT(draft),     1, MOST_FOLLOWING,     "10",   NULL, "tokens taken behind a match"              },
    {"nodes",     PARAM_INT,  AT(nodes),     1, TREE_MAX_NODES - 1, "64",   NULL, "prefixes proposed"                        },
    {"matches",   PARAM_INT,  AT(matches),   1, MOST_MATCHES,       "1000", NULL, "places looked at"                         },
};
#undef AT

static const char *const SOURCES[] = {"datastore"};

// A prefix of what follows. In order of creation; a parent stands before its children.
typedef struct TrieNode {
    int token, parent; // parent: TREE_NONE at depth 1
    int depth, count;
    bool kept, inner; // among the best; with a child that is
} TrieNode;

typedef struct Rest {
    RestParams p;
    Datastore store;
    int recent[MOST_PHRASE]; // (recent_count): the sequence's end
    int recent_count;
    TrieNode *trie; // (matches * draft)
    int trie_count;
    int *best; // (nodes): numbers in the trie
    int best_count;
    Offers offers;
} Rest;

static void rest_close(void *self) {
    Rest *r = self;
    if (!r) return;
    datastore_close(&r->store);
    mem_free(r->trie);
    mem_free(r->best);
    mem_free(r);
}

static bool rest_init(Rest *r, const MethodEnv *env, const RestParams *p, Error *e) {
    r->p = *p;
    r->offers = (Offers){.names = SOURCES, .source_count = 1};
    if (!p->datastore[0])
        return error_input(e, "datastore=FILE is missing: 'outpace datastore build' makes one");
    if (p->shortest > p->longest)
        return error_input(e, "'shortest' %d is larger than 'longest' %d", p->shortest, p->longest);
    if (!datastore_open(&r->store, p->datastore, e)) return false;
    if (r->store.vocab > env->target->shape.vocab)
        return error_input(e,
                           "'%s' is of a vocabulary of %d, the model's is %d: build one with its tokenizer",
                           p->datastore, r->store.vocab, env->target->shape.vocab);
    r->trie = mem_alloc((size_t)p->matches * (size_t)p->draft, sizeof *r->trie);
    r->best = mem_alloc((size_t)p->nodes, sizeof *r->best);
    return (r->trie && r->best) || error_system(e, "out of memory for a trie of %d places", p->matches);
}

static void *rest_open(const MethodEnv *env, const void *values, Error *e) {
    Rest *r = mem_alloc(1, sizeof *r);
    if (!r) error_system(e, "out of memory");
    if (r && rest_init(r, env, values, e)) return r;
    rest_close(r);
    return NULL;
}

// Keeps the last `longest` tokens of a sequence.
static void remember(Rest *r, const int *sequence, int length) {
    r->recent_count = length < r->p.longest ? length : r->p.longest;
    memcpy(r->recent, sequence + length - r->recent_count, (size_t)r->recent_count * sizeof *r->recent);
}

static bool rest_begin(void *self, const Prompt *prompt, Error *e) {
    (void)e;
    remember(self, prompt->tokens, prompt->count);
    return true;
}

// --- the trie

static int add_node(Rest *r, int parent, int token) {
    r->trie[r->trie_count] = (TrieNode){
        .token = token, .parent = parent, .depth = parent == TREE_NONE ? 1 : r->trie[parent].depth + 1};
    return r->trie_count++;
}

// path (draft): the nodes of the continuation before, *length of them; becomes that of this one.
static void add_continuation(Rest *r, const int32_t *tokens, int count, int *path, int *length) {
    int shared = 0;
    while (shared < count && shared < *length && r->trie[path[shared]].token == tokens[shared]) shared++;
    for (int i = shared; i < count; i++) path[i] = add_node(r, i ? path[i - 1] : TREE_NONE, tokens[i]);
    for (int i = 0; i < count; i++) r->trie[path[i]].count++;
    *length = count;
}

// What follows the n last tokens, wherever they stand in the store.
static void build_trie(Rest *r, int n) {
    int first, path[MOST_FOLLOWING], length = 0;
    int places = datastore_find(&r->store, r->recent + r->recent_count - n, n, &first);
    int looked_at = places < r->p.matches ? places : r->p.matches;
    r->trie_count = 0;
    for (int i = 0; i < looked_at; i++) {
        const int32_t *tokens;
        int at = first + (int)((int64_t)i * places / looked_at);
        int count = datastore_read(&r->store, (int64_t)r->store.places[at] + n, r->p.draft, &tokens);
        add_continuation(r, tokens, count, path, &length);
    }
}

// --- the best prefixes

// Of nodes of one depth the first made has the smaller tokens. A parent is always better than its child.
static bool is_better(const Rest *r, int a, int b) {
    const TrieNode *x = &r->trie[a], *y = &r->trie[b];
    if (x->count != y->count) return x->count > y->count;
    return x->depth != y->depth ? x->depth < y->depth : a < b;
}

static void choose(Rest *r) {
    r->best_count = 0;
    for (int i = 0; i < r->trie_count; i++) {
        if (r->best_count == r->p.nodes && !is_better(r, i, r->best[r->best_count - 1])) continue;
        int at = r->best_count < r->p.nodes ? r->best_count++ : r->best_count - 1;
        for (; at > 0 && is_better(r, i, r->best[at - 1]); at--) r->best[at] = r->best[at - 1];
        r->best[at] = i;
    }
    for (int i = 0; i < r->best_count; i++) {
        TrieNode *node = &r->trie[r->best[i]];
        node->kept = true;
        if (node->parent != TREE_NONE) r->trie[node->parent].inner = true;
    }
}

// A row for each of the best that no other goes on from: together they are the tree.
static void offer_leaves(Rest *r, Tree *tree) {
    for (int i = 0; i < r->best_count; i++) {
        int row[MOST_FOLLOWING], depth = r->trie[r->best[i]].depth;
        if (r->trie[r->best[i]].inner) continue;
        for (int n = r->best[i], k = depth - 1; n != TREE_NONE; n = r->trie[n].parent)
            row[k--] = r->trie[n].token;
        offer_row(&r->offers, tree, 0, row, depth);
    }
}

// Where the longest match is followed by nothing, a shorter one may be.
static bool rest_propose(void *self, Tree *tree, Error *e) {
    (void)e;
    Rest *r = self;
    int n = r->p.longest < r->recent_count ? r->p.longest : r->recent_count;
    r->offers.count = r->trie_count = 0;
    for (; n >= r->p.shortest && r->trie_count == 0; n--) build_trie(r, n);
    choose(r);
    offer_leaves(r, tree);
    return true;
}

static bool rest_observe(void *self, const Observation *seen, Error *e) {
    (void)e;
    remember(self, seen->sequence, seen->length);
    return true;
}

static const Offers *rest_offers(const void *self) { return &((const Rest *)self)->offers; }

const MethodInfo method_rest = {.name = "rest",
                                .summary = "what followed the last tokens in a datastore of texts",
                                .needs = NEEDS_FILE,
                                .params = PARAMS,
                                .param_count = sizeof PARAMS / sizeof *PARAMS,
                                .param_size = sizeof(RestParams),
                                .open = rest_open,
                                .begin = rest_begin,
                                .propose = rest_propose,
                                .observe = rest_observe,
                                .close = rest_close,
                                .offers = rest_offers};
