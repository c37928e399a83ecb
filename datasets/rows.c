#include "datasets/rows.h"

#include "engine/base/json.h"

#include <string.h>
#include <utf8proc.h>

// Parsed JSON takes many times its bytes: "[]," is three of them and a hundred of memory. Lines are parsed
// one at a time.
static const size_t MOST_ARRAY = 64u << 20, MOST_LINE = 16u << 20;

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
    json_t *json = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!json && !*why.text) return error_system(e, "out of memory parsing '%s'", at->file);
    if (!json)
        return error_input(
            e, "'%s', line %zu, column %d: is not JSON: %s; lines of plain text are of the format text",
            at->file, at->number, why.column, json_why(&why));
    bool ok = take_json(at, json, take, state, e);
    json_decref(json);
    return ok;
}

static bool is_utf8(const char *s, size_t n) {
    utf8proc_int32_t code;
    for (utf8proc_ssize_t left = (utf8proc_ssize_t)n, used; left > 0; s += used, left -= used)
        if ((used = utf8proc_iterate((const utf8proc_uint8_t *)s, left, &code)) < 1) return false;
    return true;
}

static bool take_text(const Row *at, const char *line, size_t n, TakeRow *take, void *state, Error *e) {
    if (memchr(line, 0, n) || !is_utf8(line, n))
        return error_input(e, "'%s', line %zu: is not text in UTF-8: convert it, as with iconv", at->file,
                           at->number);
    json_t *json = json_pack("{s:s%}", "prompt", line, n);
    bool ok =
        json ? take_json(at, json, take, state, e) : error_system(e, "out of memory for '%s'", at->file);
    json_decref(json);
    return ok;
}

static bool is_blank(const char *line, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r", line[i]) || !line[i]) return false;
    return true;
}

static bool each_line(const char *bytes, size_t n, const char *file, RowsKind kind, TakeRow *take,
                      void *state, Error *e) {
    Row at = {.file = file, .unit = "line"};
    for (size_t from = 0, length; from < n; from += length + 1) {
        const char *line = bytes + from, *end = memchr(line, '\n', n - from);
        length = end ? (size_t)(end - line) : n - from;
        at.number++;
        if (is_blank(line, length)) continue;
        if (length > MOST_LINE)
            return error_input(e, "'%s', line %zu: has %zu bytes, %zu are the most: is it JSON Lines?", file,
                               at.number, length, MOST_LINE);
        size_t shown = length - (line[length - 1] == '\r');
        if (!(kind == ROWS_TEXT ? take_text : take_line)(&at, line, shown, take, state, e)) return false;
    }
    return true;
}

static bool each_item(const char *bytes, size_t n, const char *file, TakeRow *take, void *state, Error *e) {
    Row at = {.file = file, .unit = "row"};
    if (n > MOST_ARRAY)
        return error_input(e, "'%s' is one JSON array of %zu bytes, %zu are the most: make it JSON Lines",
                           file, n, MOST_ARRAY);
    json_t *list = json_from_bytes(bytes, n, file, e);
    bool ok = list;
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        at.number = i + 1;
        ok = take_json(&at, json_array_get(list, i), take, state, e);
    }
    json_decref(list);
    return ok;
}

bool rows_each(const char *bytes, size_t n, const char *file, RowsKind kind, TakeRow *take, void *state,
               Error *e) {
    static const char MARK[] = "\xEF\xBB\xBF"; // that some editors put before UTF-8
    size_t from = n >= 3 && memcmp(bytes, MARK, 3) == 0 ? 3 : 0;
    bytes += from;
    n -= from;
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", bytes[i]) && bytes[i]) i++;
    if (kind == ROWS_JSON && i < n && bytes[i] == '[') return each_item(bytes, n, file, take, state, e);
    return each_line(bytes, n, file, kind, take, state, e);
}
