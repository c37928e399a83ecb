// Continuations of every token: made by the model once, kept in a file, looked up in every step.
//
// A table is kept as DIR/NAME-KEY.table, KEY being the SHA-256 of a text that says all it was made from and
// how (the weights' identity, the backend, the prefix), but not its size: a larger table serves every smaller
// k and w. The file:
//
//      | "OPTABLE1" | tokens, k, w, 0: 4 x u32 | key: 64 digits | SHA-256 of the ids: 64 digits | ids: i32 |
//
// little-endian throughout. Every byte is hostile until checked. A file that is broken, or of another key, is
// the same as none: the table is made anew and takes its place.
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"

#include <stdbool.h>
#include <stddef.h>

enum { TOKEN_TABLE_MAX_K = 64, TOKEN_TABLE_MAX_W = 64, TABLE_NO_TOKEN = -1 };

typedef struct TokenTable {
    int tokens; // ids [0, tokens) have continuations
    int k;      // of each token, best first
    int w;      // tokens of a continuation
    int *ids;   // (tokens, k, w); TABLE_NO_TOKEN from where a continuation ends
} TokenTable;

static inline int *token_table_row(const TokenTable *t, int token, int rank) {
    return t->ids + ((size_t)token * (size_t)t->k + (size_t)rank) * (size_t)t->w;
}

bool token_table_init(TokenTable *t, int tokens, int k, int w, Error *e); // of TABLE_NO_TOKEN
void token_table_release(TokenTable *t);

// A file's bytes. Ids are below `vocab`.
bool token_table_parse(const char *bytes, size_t n, const char *place, int vocab, TokenTable *t,
                       char key[SHA256_TEXT], Error *e);

typedef struct TableFile {
    char *path; // NULL: nothing is kept
    char key[SHA256_TEXT];
} TableFile;

// Names the file of the table `name` in `directory`, which must be there when it is saved. made_of: all that
// the table depends on.
bool table_file_init(TableFile *f, const char *directory, const char *name, const char *made_of, Error *e);
void table_file_release(TableFile *f);

// True if a good table is kept there, for `tokens` tokens and ids below `vocab`.
bool table_file_load(const TableFile *f, int tokens, int vocab, TokenTable *t);
bool table_file_save(const TableFile *f, const TokenTable *t, Error *e);
