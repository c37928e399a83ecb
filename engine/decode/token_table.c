// Tables of tokens and their files.
//
// Invariant of a table: 1 <= k <= TOKEN_TABLE_MAX_K, 1 <= w <= TOKEN_TABLE_MAX_W, and every id is below the
// vocabulary or TABLE_NO_TOKEN. A file's sizes are checked before anything is allocated, its ids before a
// table is returned.
#include "engine/decode/model_tables.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char MAGIC[] = "OPTABLE1";
enum { DIGITS = SHA256_TEXT - 1, KEY_AT = 24, SUM_AT = KEY_AT + DIGITS, IDS_AT = SUM_AT + DIGITS };
enum { NAMED_DIGITS = 16 }; // digits of the key in the file's name

static void token_table_check(const TokenTable *t) {
    assert(t->tokens >= 1 && t->k >= 1 && t->w >= 1);
    assert(t->k <= TOKEN_TABLE_MAX_K && t->w <= TOKEN_TABLE_MAX_W);
}

bool token_table_init(TokenTable *t, int tokens, int k, int w, Error *e) {
    size_t rows = (size_t)tokens * (size_t)k, count;
    *t = (TokenTable){.tokens = tokens, .k = k, .w = w};
    token_table_check(t);
    if (size_mul(rows, (size_t)w, &count)) t->ids = mem_try(count, sizeof *t->ids);
    if (!t->ids) return error_system(e, "out of memory for a table of %zu rows of %d tokens", rows, w);
    for (size_t i = 0; i < count; i++) t->ids[i] = TABLE_NO_TOKEN;
    return true;
}

void token_table_release(TokenTable *t) {
    mem_free(t->ids);
    *t = (TokenTable){0};
}

int token_table_count(const TokenTable *t) {
    int count = 0;
    for (int x = 0; x < t->tokens; x++) count += token_table_has(t, x);
    return count;
}

static size_t id_count(const TokenTable *t) { return (size_t)t->tokens * (size_t)t->k * (size_t)t->w; }

// --- the file's bytes

static uint32_t load_u32(const char *p) {
    const unsigned char *b = (const unsigned char *)p;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void store_u32(char *p, uint32_t x) {
    for (int i = 0; i < 4; i++) p[i] = (char)(unsigned char)(x >> 8 * i);
}

static bool parse_sizes(const char *bytes, size_t n, const char *place, int vocab, TokenTable *t, Error *e) {
    if (n < IDS_AT || memcmp(bytes, MAGIC, sizeof MAGIC - 1) != 0)
        return error_input(e, "'%s' is not a table of tokens", place);
    uint32_t tokens = load_u32(bytes + 8), k = load_u32(bytes + 12), w = load_u32(bytes + 16);
    if (tokens < 1 || tokens > (uint32_t)vocab || k < 1 || k > TOKEN_TABLE_MAX_K || w < 1 ||
        w > TOKEN_TABLE_MAX_W)
        return error_input(e, "'%s' claims %u tokens with %u continuations of %u: not a table of this model",
                           place, tokens, k, w);
    *t = (TokenTable){.tokens = (int)tokens, .k = (int)k, .w = (int)w};
    size_t want = IDS_AT + 4 * id_count(t);
    return n == want || error_input(e, "'%s' has %zu bytes, its header needs %zu", place, n, want);
}

static bool parse_ids(const char *bytes, const char *place, int vocab, TokenTable *t, Error *e) {
    char sum[SHA256_TEXT];
    if (!sha256_bytes(bytes + IDS_AT, 4 * id_count(t), sum, e)) return false;
    if (memcmp(sum, bytes + SUM_AT, DIGITS) != 0)
        return error_input(e, "'%s' is damaged: its checksum differs", place);
    for (size_t i = 0; i < id_count(t); i++) {
        uint32_t id = load_u32(bytes + IDS_AT + 4 * i);
        if (id >= (uint32_t)vocab && id != (uint32_t)TABLE_NO_TOKEN)
            return error_input(e, "'%s' has token %u, outside the vocabulary of %d", place, id, vocab);
        t->ids[i] = id == (uint32_t)TABLE_NO_TOKEN ? TABLE_NO_TOKEN : (int)id;
    }
    return true;
}

bool token_table_parse(const char *bytes, size_t n, const char *place, int vocab, TokenTable *t,
                       char key[SHA256_TEXT], Error *e) {
    TokenTable sizes = {0};
    *t = (TokenTable){0};
    if (!parse_sizes(bytes, n, place, vocab, &sizes, e)) return false;
    if (!token_table_init(t, sizes.tokens, sizes.k, sizes.w, e)) return false;
    memcpy(key, bytes + KEY_AT, DIGITS);
    key[DIGITS] = 0;
    if (parse_ids(bytes, place, vocab, t, e)) {
        token_table_check(t);
        return true;
    }
    token_table_release(t);
    return false;
}

// --- the file

bool table_file_init(TableFile *f, const char *directory, const char *name, const char *made_of, Error *e) {
    char file[128];
    *f = (TableFile){0};
    if (!sha256_bytes(made_of, strlen(made_of), f->key, e)) return false;
    snprintf(file, sizeof file, "%s-%.*s.table", name, NAMED_DIGITS, f->key);
    f->path = file_path(directory, file);
    return true;
}

void table_file_release(TableFile *f) {
    mem_free(f->path);
    *f = (TableFile){0};
}

bool table_file_load(const TableFile *f, int tokens, int vocab, TokenTable *t) {
    LOCAL_MEMORY char *bytes = NULL;
    char key[SHA256_TEXT];
    size_t n, most = IDS_AT + 4 * (size_t)tokens * TOKEN_TABLE_MAX_K * TOKEN_TABLE_MAX_W;
    *t = (TokenTable){0};
    if (!f->path || !file_read(f->path, most, &bytes, &n, NULL)) return false;
    if (token_table_parse(bytes, n, f->path, vocab, t, key, NULL) && t->tokens == tokens &&
        strcmp(key, f->key) == 0)
        return true;
    token_table_release(t);
    return false;
}

bool table_file_save(const TableFile *f, const TokenTable *t, Error *e) {
    size_t count = id_count(t), n = IDS_AT + 4 * count;
    if (!f->path) return true;
    token_table_check(t);
    assert(t->ids);
    char sum[SHA256_TEXT];
    LOCAL_MEMORY char *bytes = mem_try(n, 1);
    if (!bytes) return error_system(e, "out of memory for '%s'", f->path);
    memcpy(bytes, MAGIC, sizeof MAGIC - 1);
    store_u32(bytes + 8, (uint32_t)t->tokens);
    store_u32(bytes + 12, (uint32_t)t->k);
    store_u32(bytes + 16, (uint32_t)t->w);
    memcpy(bytes + KEY_AT, f->key, DIGITS);
    for (size_t i = 0; i < count; i++) store_u32(bytes + IDS_AT + 4 * i, (uint32_t)t->ids[i]);
    if (!sha256_bytes(bytes + IDS_AT, 4 * count, sum, e)) return false;
    memcpy(bytes + SUM_AT, sum, DIGITS);
    return file_write(f->path, bytes, n, e);
}
