// The tables that N-Grammys makes from the model (section 4.1): the unigrams, the bigrams, and either of them
// loaded from the cache directory if a table that serves is kept there, made and kept otherwise. Bigrams may
// also be made on demand, a token's row when the token first occurs; they are the same. A table's key names
// everything it depends on: the weights' identity, the backend with its kernels and compute type, the prefix.
// Without an identity of the weights or a cache directory, a table lasts as long as the run.
#pragma once
#include "engine/base/file.h"
#include "engine/decode/env.h"

#include <assert.h>

// --- a table: continuations of every token --------------------------------------------------------------

// A table's file is DIR/NAME-KEY.table, where KEY is the SHA-256 of a text that names everything the table
// was made from and how (the weights' identity, the backend, the prefix), but not its size: a larger table
// serves every smaller k and w. The file:
//
//      | "OPTABLE1" | tokens, k, w, 0: 4 x u32 | key: 64 digits | SHA-256 of the ids: 64 digits | ids: i32 |
//
// little-endian throughout. Every byte is hostile until checked. A file that is broken, or has another key,
// counts as missing: the table is made again and replaces it. Rows that aren't made yet are empty.
enum { TOKEN_TABLE_MAX_K = 64, TOKEN_TABLE_MAX_W = 64, TABLE_NO_TOKEN = -1 };

typedef struct TokenTable {
    int tokens; // ids [0, tokens) have continuations
    int k;      // continuations per token, best first
    int w;      // tokens per continuation
    int *ids;   // (tokens, k, w); TABLE_NO_TOKEN after a continuation's end
} TokenTable;

// The continuation `rank` of a token, (w); the rows of all ranks are contiguous.
static inline int *token_table_row(const TokenTable *t, int token, int rank) {
    assert(token >= 0 && token < t->tokens && rank >= 0 && rank < t->k);
    return t->ids + ((size_t)token * (size_t)t->k + (size_t)rank) * (size_t)t->w;
}

// Whether a token's rows are made; and of how many tokens they are.
static inline bool token_table_has(const TokenTable *t, int token) {
    return *token_table_row(t, token, 0) != TABLE_NO_TOKEN;
}
int token_table_count(const TokenTable *t);

// Fills the table with TABLE_NO_TOKEN. Fails if memory runs out for it.
bool token_table_init(TokenTable *t, int tokens, int k, int w, Error *e);
void token_table_release(TokenTable *t);

// Parses a file's bytes; ids must be below `vocab`. `place` names the file in errors.
bool token_table_parse(const char *bytes, size_t n, const char *place, int vocab, TokenTable *t,
                       char key[SHA256_TEXT], Error *e);

typedef struct TableFile {
    char *path; // NULL: the table isn't kept
    char key[SHA256_TEXT];
} TableFile;

// Names the file of table `name` in `directory`, which must exist when the table is saved. made_of:
// everything that the table depends on.
bool table_file_init(TableFile *f, const char *directory, const char *name, const char *made_of, Error *e);
void table_file_release(TableFile *f);

// Whether a good table is kept there, for `tokens` tokens and ids below `vocab`; loads it.
bool table_file_load(const TableFile *f, int tokens, int vocab, TokenTable *t);
bool table_file_save(const TableFile *f, const TokenTable *t, Error *e);

// --- made from the model ---------------------------------------------------------------------------------

// The tokens that the model favours whatever comes before, from the embeddings only: V of the input (rows v),
// U of the output (rows u, mean m).
//
//      UNIGRAM_DISTANCE   |u_x - m| under the inner product u'V'Vu, smallest first (the paper's text)
//      UNIGRAM_INNER      m'V'V u_x, smallest first (the appendix's code, which calls it a distance)
//
// The first costs vocab * width^2 multiplications, once: minutes for a 7B model on one core.
typedef enum { UNIGRAM_DISTANCE, UNIGRAM_INNER } UnigramOrder;

// Writes the first `count` tokens of [0, vocab) to out; of equals, the lower one first.
bool unigram_order(const TargetFacts *facts, int vocab, int width, UnigramOrder order, int count,
                   Progress progress, int *out, Error *e);

// The model's own n-grams: its continuations of a single token, after the prefix or after nothing. No text is
// needed: the token is run as the root of a tree over an empty cache, as many trees at a time as a step
// holds.
//
//      root x --- pick 1 --- greedy --- greedy        w = 1: the k best tokens after x
//            \--- pick 2 --- greedy --- greedy        w > 1: each continued greedily by the model
typedef struct Bigrams {
    TokenTable table; // k and w at least as asked for, but k at most the number of real tokens
    Session *target;
    const int *prefix; // (prefix_count): before every x
    int prefix_count;
    TableFile file;
    int made;                   // tokens whose rows the file has
    int tokens[TREE_MAX_NODES]; // whose rows are being made
    int nodes[TREE_MAX_NODES];  // of the open step: roots, then the ends of chains
    int *ids;                   // (nodes of a step, TOKEN_TABLE_MAX_K)
    float *logits;              // the same
} Bigrams;

// Opens the table with the rows of all tokens, or on demand with those that are kept. prefix: the text's
// comes before each token; env->facts.prefix must outlive the table. Closed after a failure, too.
bool bigrams_open(const MethodEnv *env, bool prefix, int k, int w, bool on_demand, Bigrams *b, Error *e);

// Makes the rows of these tokens, TREE_MAX_NODES at most, that the table lacks. A continuation ends where the
// context ends. The target keeps its sequence, but not its open step. After a failure, the rows that were
// missing are empty.
bool bigrams_need(Bigrams *b, const int *tokens, int count, Error *e);

// Keeps the rows that are new. Several processes may use the same file: at worst, a row is made twice.
void bigrams_close(Bigrams *b); // accepts an empty one

typedef struct PlannedTable {
    const char *name;
    bool prefix;
    int k, w;
} PlannedTable;

// In a rehearsal, methods are opened only to see whether they can be: no session is run, tables that aren't
// kept yet stay empty, and the cost of making them is added up, except for rows on demand.
typedef struct Rehearsal {
    const char *backend, *kernels; // of the session that will run
    double rows;                   // for the target to run
    double operations;             // for the host, in double
    PlannedTable tables[8];        // (table_count): counted so far
    int table_count;
} Rehearsal;

// The first k tokens of the order, as the continuations of one token 0.
bool unigram_table(const MethodEnv *env, UnigramOrder order, int k, TokenTable *out, Error *e);
