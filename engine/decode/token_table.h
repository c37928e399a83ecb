// Continuations of every token: made from the model once, kept in a file, looked up in every step.
//
// A table's file is DIR/NAME-KEY.table, where KEY is the SHA-256 of a text that names everything the table
// was made from and how (the weights' identity, the backend, the prefix), but not its size: a larger table
// serves every smaller k and w. The file:
//
//      | "OPTABLE1" | tokens, k, w, 0: 4 x u32 | key: 64 digits | SHA-256 of the ids: 64 digits | ids: i32 |
//
// little-endian throughout. Every byte is hostile until checked. A file that is broken, or has another key,
// counts as missing: the table is made again and replaces it.
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

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

// Fills the table with TABLE_NO_TOKEN. Fails if there is no memory for it.
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
