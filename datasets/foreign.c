// Files and rows of other kinds, recognized by first bytes, name or keys. Nothing here converts them: the
// message has a command that does.
#include "datasets/format.h"

#include <string.h>
#include <strings.h>

#define PANDAS(read)                           \
    "python3 -c \"import pandas; pandas." read \
    "('FILE').to_json('FILE.jsonl', orient='records', lines=True)\""
#define CSV(how)                                                                       \
    ", the prompts' column called prompt, as by: python3 -c \"import csv, json, sys; " \
    "[print(json.dumps(row))"                                                          \
    " for row in csv.DictReader(sys.stdin" how ")]\" <FILE >FILE.jsonl"

typedef struct ForeignFile {
    const char *name, *mark, *convert; // mark: the first bytes, or the separator of columns
} ForeignFile;

static const ForeignFile FILES[] = {
    {"a Parquet file", "PAR1", ", as by: " PANDAS("read_parquet")},
    {"an Arrow file", "ARROW1", ", as by: " PANDAS("read_feather")},
    {"a zip archive", "PK\3\4", " after unpacking it; of Excel, save the sheet as CSV"},
};
static const ForeignFile SEPARATED[] = {
    {"CSV", ",", CSV("")},
    {"TSV", "\t", CSV(", delimiter='\\t'")},
};

// keys: the keys of such a row. convert: a jq program for one row.
typedef struct ForeignRow {
    const char *name, *keys[2], *convert;
} ForeignRow;

static const ForeignRow ROWS[] = {
    {"ShareGPT",
     {"conversations", NULL},
     "{turns: [.conversations[] | select(.from == \"human\") | .value]}"},
    {"chat messages", {"messages", NULL}, "{turns: [.messages[] | select(.role == \"user\") | .content]}"},
    {"Alpaca",
     {"instruction", "output"},
     "{prompt: ([.instruction, .input // empty | select(. != \"\")] | join(\"\\n\\n\")), reference: "
     ".output}"},
};

static bool refuse(const ForeignFile *f, const char *file, Error *e) {
    return error_input(e, "'%s' is %s, which is not read: convert it to JSON Lines%s", file, f->name,
                       f->convert);
}

static bool ends_in(const char *file, const char *end) { // in either case
    size_t n = strlen(file), k = strlen(end);
    return n >= k && strcasecmp(file + n - k, end) == 0;
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

bool foreign_check_file(const char *bytes, size_t n, const char *file, Error *e) {
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        size_t magic = strlen(FILES[i].mark);
        if (n >= magic && memcmp(bytes, FILES[i].mark, magic) == 0) return refuse(&FILES[i], file, e);
    }
    if (n >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) bytes += 3, n -= 3;
    if (n && *bytes && strchr("{[ \t\r\n", *bytes)) return true;
    const char *line = memchr(bytes, '\n', n);
    size_t first = line ? (size_t)(line - bytes) : n;
    if (first && bytes[first - 1] == '\r') first--;
    for (size_t i = 0; i < sizeof SEPARATED / sizeof *SEPARATED; i++)
        if (ends_in(file, i ? ".tsv" : ".csv") || is_head(bytes, first, *SEPARATED[i].mark))
            return refuse(&SEPARATED[i], file, e);
    return true;
}

bool foreign_check_row(const Row *row, Error *e) {
    if (json_object_get(row->json, "prompt") || json_object_get(row->json, "turns")) return true;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const ForeignRow *f = &ROWS[i];
        if (!json_object_get(row->json, f->keys[0]) ||
            (f->keys[1] && !json_object_get(row->json, f->keys[1])))
            continue;
        return error_input(
            e,
            "'%s', %s %zu: has the keys of %s, which is not read: convert the file, as by: jq -c "
            "'%s%s' FILE >FILE.jsonl",
            row->file, row->unit, row->number, f->name, *row->unit == 'r' ? ".[] | " : "", f->convert);
    }
    return true;
}
