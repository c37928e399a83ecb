// Bytes to rows: JSON Lines, one JSON array, lines of text, and tables of separated values (RFC 4180). Every
// row is parsed alone, because parsed JSON takes many times its size: "[]," is three bytes and a hundred in
// memory.
#include "datasets/format.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <string.h>
#include <strings.h>

static const size_t MOST_LINE = 16u << 20;

// --- kinds of files --------------------------------------------------------------------------------------

static bool ends_in(const char *file, const char *end) { // in either case, before ".gz" too
    size_t n = strlen(file), k = strlen(end);
    if (n > 3 && strcasecmp(file + n - 3, ".gz") == 0) n -= 3;
    return n >= k && strncasecmp(file + n - k, end, k) == 0;
}

// Whether the line names columns, one of them a usual name of the prompts.
static bool is_head(const char *line, size_t n, char separator) {
    static const char *const NAMES[] = {"prompt", "instruction", "question", "text", "input", "query"};
    for (size_t from = 0, length; from < n; from += length + 1) {
        const char *end = memchr(line + from, separator, n - from);
        length = end ? (size_t)(end - line) - from : n - from;
        if (!end && from == 0) return false; // one column only
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
            if (strlen(NAMES[i]) == length && strncasecmp(line + from, NAMES[i], length) == 0) return true;
    }
    return false;
}

static RowsKind kind_of_text(const char *bytes, size_t n, const char *file) {
    if (n >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) bytes += 3, n -= 3;
    if (n && *bytes && strchr("{[ \t\r\n", *bytes)) return ROWS_JSON;
    const char *line = memchr(bytes, '\n', n);
    size_t first = line ? (size_t)(line - bytes) : n;
    if (first && bytes[first - 1] == '\r') first--;
    if (ends_in(file, ".csv") || is_head(bytes, first, ',')) return ROWS_CSV;
    return ends_in(file, ".tsv") || is_head(bytes, first, '\t') ? ROWS_TSV : ROWS_JSON;
}

bool rows_kind(const char *bytes, size_t n, const char *file, RowsKind *out, Error *e) {
    if (n >= 6 && memcmp(bytes, "ARROW1", 6) == 0)
        return error_input(e,
                           "'%s' is an Arrow file, which is not read: make it Parquet, as by: python3 -c "
                           "\"import pandas; pandas.read_feather('FILE').to_parquet('FILE.parquet')\"",
                           file);
    if (n >= 4 && memcmp(bytes, "PK\3\4", 4) == 0)
        return error_input(e,
                           "'%s' is a zip archive, which is not read: unpack it; of Excel, save "
                           "the sheet as CSV",
                           file);
    *out = parquet_is(bytes, n) ? ROWS_PARQUET : kind_of_text(bytes, n, file);
    return true;
}

// --- JSON and text ---------------------------------------------------------------------------------------

static bool take_json(const Row *at, const json_t *json, TakeRow *take, void *state, Error *e) {
    Row row = *at;
    row.json = json;
    if (!json_is_object(json))
        return error_input(e, "'%s', %s %zu: must be a JSON object, {\"prompt\": \"...\"}%s", at->file,
                           at->unit, at->number,
                           *at->unit == 'l' ? "; lines of plain text are of the format text" : "");
    return take(state, &row, e);
}

static bool take_line(const Row *at, const char *line, size_t n, TakeRow *take, void *state, Error *e) {
    json_error_t why;
    json_auto_t *json = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!json)
        return error_input(
            e, "'%s', line %zu, column %d: is not JSON: %s; lines of plain text are of the format text",
            at->file, at->number, why.column, json_why(&why));
    return take_json(at, json, take, state, e);
}

static bool take_text(const Row *at, const char *line, size_t n, TakeRow *take, void *state, Error *e) {
    json_auto_t *json = memchr(line, 0, n) ? NULL : json_pack("{s:s%}", "prompt", line, n); // NULL: not UTF-8
    if (!json)
        return error_input(e, "'%s', line %zu: is not text in UTF-8: convert it, as with iconv", at->file,
                           at->number);
    return take_json(at, json, take, state, e);
}

static bool each_line(const char *bytes, size_t n, const char *file, RowsKind kind, TakeRow *take,
                      void *state, Error *e) {
    Row at = {.file = file, .unit = "line"};
    for (size_t from = 0, length; from < n; from += length + 1) {
        const char *line = bytes + from, *end = memchr(line, '\n', n - from);
        length = end ? (size_t)(end - line) : n - from;
        size_t blanks = 0;
        while (blanks < length && line[blanks] && strchr(" \t\r", line[blanks])) blanks++;
        at.number++;
        if (blanks == length) continue;
        if (length > MOST_LINE)
            return error_input(e, "'%s', line %zu: has %zu bytes, %zu are the most: is it JSON Lines?", file,
                               at.number, length, MOST_LINE);
        size_t shown = length - (line[length - 1] == '\r');
        if (!(kind == ROWS_TEXT ? take_text : take_line)(&at, line, shown, take, state, e)) return false;
    }
    return true;
}

static const char *after_space(const char *at, const char *end) {
    while (at < end && *at && strchr(" \t\r\n", *at)) at++;
    return at;
}

// Parses the item at *from and steps over it.
static bool take_item(const Row *at, const char **from, const char *end, TakeRow *take, void *state,
                      Error *e) {
    size_t rest = (size_t)(end - *from), n = rest < MOST_LINE ? rest : MOST_LINE;
    json_error_t why;
    if (rest && **from != '{') return take_json(at, NULL, take, state, e);
    json_auto_t *json = json_loadb(*from, n, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &why);
    if (!json)
        return error_input(e, "'%s', row %zu, line %d of it: is not JSON%s: %s", at->file, at->number,
                           why.line, rest > n ? ", or longer than 16 MB" : "", json_why(&why));
    *from += why.position; // the bytes that were read
    return take_json(at, json, take, state, e);
}

static bool each_item(const char *bytes, size_t n, const char *file, TakeRow *take, void *state, Error *e) {
    Row row = {.file = file, .unit = "row"};
    const char *end = bytes + n, *at = after_space(bytes + 1, end);
    for (bool more = at == end || *at != ']'; more; at = after_space(at + 1, end)) {
        row.number++;
        if (!take_item(&row, &at, end, take, state, e)) return false;
        at = after_space(at, end);
        if (at == end || !(*at == ',' || *at == ']'))
            return error_input(e, "'%s', after row %zu: has neither ',' nor ']': is the file cut short?",
                               file, row.number);
        more = *at == ',';
    }
    if (row.number == 0) at = after_space(at + 1, end);
    return at == end ||
           error_input(e, "'%s', after row %zu: has more after the array's end: remove it", file, row.number);
}

// --- separated values ------------------------------------------------------------------------------------
//
// A record ends at a line's end, a field at the separator. A field in quotes may hold both, and two quotes
// for each of its own. The first record names the columns; an empty field is absent from its row, and a
// column without a name from all rows.

enum { MOST_COLUMNS = 4096 };

typedef struct SeparatedTable {
    const char *at, *end;
    const char *file;
    char separator;
    size_t line;  // of `at`, from 1
    char **names; // (count)
    size_t count, capacity;
    Text field;
} SeparatedTable;

static bool table_error(const SeparatedTable *t, size_t line, const char *what, Error *e) {
    return error_input(e, "'%s', line %zu: %s", t->file, line, what);
}

static bool ends_field(const SeparatedTable *t, const char *at) {
    return at == t->end || *at == t->separator || *at == '\n' ||
           (*at == '\r' && (at + 1 == t->end || at[1] == '\n'));
}

static bool quoted_field(SeparatedTable *t, Error *e) {
    size_t line = t->line;
    for (t->at++;; t->at++) {
        const char *quote = memchr(t->at, '"', (size_t)(t->end - t->at));
        if (!quote) return table_error(t, line, "has a quote that is not closed: close it, or double it", e);
        for (const char *c = t->at; c < quote; c++) t->line += *c == '\n';
        text_add(&t->field, t->at, (size_t)(quote - t->at));
        t->at = quote + 1;
        if (t->at == t->end || *t->at != '"') break;
        text_puts(&t->field, "\"");
    }
    return ends_field(t, t->at) ||
           table_error(t, t->line, "has text after a quoted field: double the quotes inside fields", e);
}

// Reads a field into t->field. *more: another one follows in the record.
static bool next_field(SeparatedTable *t, bool *more, Error *e) {
    text_clear(&t->field);
    const char *from = t->at;
    if (t->at < t->end && *t->at == '"') {
        if (!quoted_field(t, e)) return false;
    } else {
        while (!ends_field(t, t->at)) t->at++;
        text_add(&t->field, from, (size_t)(t->at - from));
    }
    *more = t->at < t->end && *t->at == t->separator;
    if (t->at < t->end && *t->at == '\r') t->at++;
    if (t->at < t->end) t->line += *t->at++ == '\n';
    return true;
}

static bool add_name(SeparatedTable *t, Error *e) {
    const char *name = text_get(&t->field);
    if (t->count == MOST_COLUMNS) return table_error(t, 1, "names more than 4096 columns", e);
    for (size_t i = 0; *name && i < t->count; i++)
        if (strcmp(t->names[i], name) == 0)
            return error_input(e, "'%s', line 1: names the column '%s' twice: rename one", t->file, name);
    *LIST_ADD(t->names, t->count, t->capacity) = mem_text(name, t->field.length);
    return true;
}

static bool put_field(const SeparatedTable *t, size_t i, json_t *row, size_t line, Error *e) {
    const char *text = text_get(&t->field);
    if (i >= t->count || !t->names[i][0] || t->field.length == 0) return true;
    json_t *value = memchr(text, 0, t->field.length) ? NULL : json_stringn(text, t->field.length);
    return (value && json_object_set_new(row, t->names[i], value) == 0) ||
           table_error(t, line, "is not text in UTF-8: convert it, as with iconv", e);
}

static bool take_record(SeparatedTable *t, TakeRow *take, void *state, Error *e) {
    Row row = {.file = t->file, .unit = "line", .number = t->line};
    json_auto_t *json = json_object();
    size_t n = 0;
    bool more = true, ok = true, blank = ends_field(t, t->at) && *t->at != t->separator;
    while (ok && more) ok = next_field(t, &more, e) && put_field(t, n++, json, row.number, e);
    if (ok && !blank && n != t->count)
        ok = error_input(e,
                         "'%s', line %zu: has %zu fields, the first line names %zu: put quotes around texts "
                         "that hold separators",
                         t->file, row.number, n, t->count);
    row.json = json;
    return ok && (blank || take(state, &row, e));
}

static bool each_record(const char *bytes, size_t n, const char *file, char separator, TakeRow *take,
                        void *state, Error *e) {
    SeparatedTable t = {.at = bytes, .end = bytes + n, .file = file, .separator = separator, .line = 1};
    bool ok = true;
    for (bool more = true; ok && more;) ok = next_field(&t, &more, e) && add_name(&t, e);
    while (ok && t.at < t.end) ok = take_record(&t, take, state, e);
    while (t.count) mem_free(t.names[--t.count]);
    mem_free(t.names);
    text_release(&t.field);
    return ok;
}

bool rows_each(const char *bytes, size_t n, const char *file, RowsKind kind, TakeRow *take, void *state,
               Error *e) {
    static const char MARK[] = "\xEF\xBB\xBF"; // the byte order mark that some editors put before UTF-8
    if (kind == ROWS_PARQUET) return parquet_each(bytes, n, file, MOST_UNPACKED, take, state, e);
    size_t from = n >= 3 && memcmp(bytes, MARK, 3) == 0 ? 3 : 0;
    bytes += from;
    n -= from;
    if (kind == ROWS_CSV || kind == ROWS_TSV)
        return each_record(bytes, n, file, kind == ROWS_CSV ? ',' : '\t', take, state, e);
    const char *first = after_space(bytes, bytes + n);
    size_t blank = (size_t)(first - bytes);
    if (kind == ROWS_JSON && blank < n && *first == '[')
        return each_item(first, n - blank, file, take, state, e);
    return each_line(bytes, n, file, kind, take, state, e);
}
