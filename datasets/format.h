// The folder's internal page: how a file becomes prompts.
//
//     bytes -> [gzip_expand] -> rows_each: Row by Row -> prompts_add -> check ids -> cut -> order -> hash
//
// A format is a row of a table, and so is each other frame in which a paper presents the same fields. Their
// patterns are texts with fields of the row in them: "Q: {question}\nA:". {a/b} is field b of object a; a
// list of strings becomes lines. A suffix picks a part of the field: {text@first} is its first line,
// {text@rest} everything after that line, {text@marked} everything after its last "####" (all of it if there
// is none), {text@below} an empty line and the text, or nothing if the row has none.
#pragma once
#include "datasets/datasets.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <jansson.h>

// --- formats ---------------------------------------------------------------------------------------------

typedef struct Frame {
    const char *format, *name;
    const char *pattern; // of the prompt
    const char *from;    // the paper that uses the frame
} Frame;

// A split of a dataset that is published in one file: the rows whose numeric id is in [first, last].
typedef struct FormatSplit {
    const char *name; // NULL ends the list
    int first, last;
} FormatSplit;

typedef struct Format {
    const char *name;
    const char *about;
    const char *keys; // required keys, separated by spaces; they identify the format. Empty: fits every row
    const char *id;   // key of the id; NULL: the row's number
    const char *task; // the task of all rows, or of those without task_key
    const char *task_key;       // NULL: rows have none
    const char *subtask_key;    // optional: a row that has it is of the task "TASK/SUBTASK"
    const char *turns_key;      // a list with one string per turn; used if the row has it
    const char *speaker, *said; // turns_key's list has objects instead: the user's are turns, by these keys
    const char *lacks;          // keys that no row of the format has; NULL: any
    const char *prompt;         // pattern of a single turn; NULL: turns_key is required
    const char *reference;      // pattern; NULL: none
    const char *references_key; // optional: a string, or a list with one entry per turn, each perhaps a list
    const FormatSplit *splits;  // NULL: the row's "split" names its split
    bool is_text;               // each line of the file is a prompt
    bool asks;                  // `prompt` is a question or an instruction, not a text to continue
} Format;

const Format *const *format_table(size_t *count);

// Finds "FORMAT" (*frame becomes NULL) or "FORMAT:FRAME". NULL with e filled if there is none.
const Format *format_find(const char *name, const Frame **frame, Error *e);
const Frame *format_frames(const Format *format, size_t i); // the i-th frame; NULL after the last
const Frame *format_frame(const Format *format, const char *name, Error *e);

// The first format of the table whose keys the row has.
const Format *format_of_row(const json_t *row);

// --- rows ------------------------------------------------------------------------------------------------

// A row of a file, with everything that a message about it needs.
typedef struct Row {
    const json_t *json; // an object
    const char *file;
    const char *unit;   // "line", or "row" of an array
    size_t number;      // from 1
    const char *format; // the format's name
    const char *keys;   // the keys that the format requires
} Row;

typedef enum { ROWS_JSON, ROWS_TEXT, ROWS_CSV, ROWS_TSV, ROWS_PARQUET } RowsKind;
typedef bool TakeRow(void *state, Row *row, Error *e); // the row is valid until it returns

// Recognizes the kind of a file by its first bytes, its name, or the first line's names of columns. False
// with e filled for common files of other kinds, Arrow and zip (and xlsx).
bool rows_kind(const char *bytes, size_t n, const char *file, RowsKind *out, Error *e);

// Calls `take` for each row in order, until it returns false. A JSON file is one array if it begins with '['
// (after white space), else JSON Lines. Blank lines are skipped; a line of text becomes {"prompt": LINE}; a
// record of CSV or TSV becomes an object of strings, a row of Parquet one of any values.
bool rows_each(const char *bytes, size_t n, const char *file, RowsKind kind, TakeRow *take, void *state,
               Error *e);

// Fills e with "'FILE', line 7: field 'question' WHAT". Returns false.
bool row_error(const Row *row, const char *field, const char *what, Error *e);
bool row_missing(const Row *row, const char *field, Error *e);

// The value at a path of keys ("a/b", n bytes); NULL if it is absent or null.
const json_t *row_find(const json_t *row, const char *path, size_t n);

// Appends the value of field `name` as text.
bool row_text(const Row *row, const char *name, const json_t *value, Text *out, Error *e);

bool pattern_expand(const char *pattern, const Row *row, Text *out, Error *e);

// --- compressed files, and Parquet -----------------------------------------------------------------------

// A few bytes can expand to a thousand times as many, so a file may not expand to more than this.
static const size_t MOST_UNPACKED = (size_t)256 << 20;

// gzip (RFC 1952), recognized by its first bytes. All members are expanded, one after the other; more than
// `most` bytes are an error, and memory use stays about that large. Free *out with mem_free; it ends with a
// NUL.
bool gzip_is(const char *bytes, size_t n);
bool gzip_expand(const char *bytes, size_t n, const char *file, size_t most, char **out, size_t *size,
                 Error *e);

// Blocks inside files. True if the n bytes at `in` expand to `size` bytes exactly.
bool gzip_block(const uint8_t *in, size_t n, uint8_t *out, size_t size);
bool snappy_block(const uint8_t *in, size_t n, uint8_t *out, size_t size);
bool zstd_block(const uint8_t *in, size_t n, uint8_t *out, size_t size);

// The rows of a Parquet file. Groups become objects, lists arrays; values of other types than numbers, truth
// values and texts are null. `most`: bytes that pages, levels and repeated texts may take together.
bool parquet_is(const char *bytes, size_t n);
bool parquet_each(const char *bytes, size_t n, const char *file, size_t most, TakeRow *take, void *state,
                  Error *e);

// --- the list of prompts ---------------------------------------------------------------------------------

// Appends the row's prompt, which has no turns if the user says nothing in the row's conversation. frame
// NULL: the format's own.
bool prompts_add(Dataset *d, const Format *format, const Frame *frame, const Row *row, Error *e);

void prompts_forget(DatasetPrompt *p);         // keeps its names only
void prompts_cut(Dataset *d, size_t from);     // removes the prompts from number `from` on
void prompts_cut_turns(Dataset *d, int turns); // keeps that many turns of each prompt, with their references
void prompts_move(Dataset *to, Dataset *from); // appends all prompts of `from`, which is then empty
bool prompts_check_ids(const Dataset *d, const char *file, Error *e); // ids are unique within a set

// by_set: sets take turns instead of tasks.
bool prompts_order(Dataset *d, const DatasetRequest *request, bool by_set, Error *e);
bool prompts_hash(Dataset *d, bool own_file, Error *e);
