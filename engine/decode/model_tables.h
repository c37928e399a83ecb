// The tables that N-Grammys takes from the model alone (section 4.1), taken from the cache directory where
// they are kept there, made and kept otherwise. What the table depends on is in its key: the weights'
// identity, the backend, its kernels and compute, the prefix. Where the weights have no identity, or there is
// no cache directory, the table is made for this run only.
#pragma once
#include "engine/decode/method.h"
#include "engine/decode/token_table.h"
#include "engine/decode/unigram.h"

typedef struct PlannedTable {
    const char *name;
    bool prefix;
    int k, w;
} PlannedTable;

// Methods are opened only to see whether they can be: no session is run, tables that are not kept yet stay
// empty, and what making them would take is added up.
typedef struct Rehearsal {
    const char *backend, *kernels; // of the session that this one stands for
    double rows;                   // that the target would run
    double operations;             // of the host besides, in double
    PlannedTable tables[8];        // (table_count): what was added
    int table_count;
} Rehearsal;

// The k continuations of w tokens of every token (bigram.h), fewer where the model can say fewer; the text's
// prefix stands before each token, or nothing. k and w of the table are at least these. The session's
// sequence is lost.
bool bigram_table(const MethodEnv *env, bool prefix, int k, int w, TokenTable *out, Error *e);

// The k first tokens as the continuations of one token 0.
bool unigram_table(const MethodEnv *env, UnigramOrder order, int k, TokenTable *out, Error *e);
