// The store by hand: questions in SQL, several stores into one, and its care.
#include "harness/cli/command.h"

#include "engine/base/file.h"
#include "engine/base/shipped.h"
#include "harness/analysis/stored.h"
#include "harness/cli/records.h"
#include "plots/letters.h"
#include "results/rows.h"
#include "results/transfer/transfer.h"

#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 256, MOST_WIDTH = 60, MOST_QUERY = 1 << 16, MOST_MEMORY = 1000000000 };

typedef struct {
    const char *db, *format, *stores;
    bool check;
    Records records;
} StoreCommandOptions;

#define AT(name) offsetof(StoreCommandOptions, name)
static const Arg SQL_OPTIONS[] = {
    STORE_OPTION(AT(db)),
    {"format", ARG_WORD, AT(format), .help = "how the rows are printed", .value = "table|csv|jsonl",
     .fallback = "table", .literal = true},
    RECORDS_OPTIONS(AT(records)),
};
static const Arg MERGE_OPTIONS[] = {
    STORE_OPTION(AT(db)),
    {"stores", ARG_WORD, AT(stores), .help = "stores to bring into it, as many as match",
     .value = "'DIR/*.db'"},
    RECORDS_OPTIONS(AT(records)),
};
static const Arg CARE_OPTIONS[] = {
    STORE_OPTION(AT(db)),
    {"check", ARG_FLAG, AT(check),
     .help = "read all of it first, looking for damage and for sums that aren't their steps'"},
    RECORDS_OPTIONS(AT(records)),
};

// --- sql -------------------------------------------------------------------------------------------------

// The printed part of a cell, at most MOST_WIDTH letters.
static int cut(const char *cell, Text *out) {
    char letter[LETTER_SIZE];
    int n = 0;
    for (; n < MOST_WIDTH && letters_next(&cell, letter); n++) text_puts(out, letter);
    return n;
}

static int width(const char *cell) {
    LOCAL_TEXT ignored = {0};
    return cut(cell, &ignored);
}

static void put_line(const Rows *r, int columns, const int *widths, bool names) {
    for (int i = 0; i < columns; i++) {
        ValueType type = names ? VALUE_TEXT : rows_type(r, i);
        printf("%s", i ? "  " : "");
        LOCAL_TEXT cell = {0};
        bool right = type == VALUE_INT || type == VALUE_REAL;
        int blanks = widths[i] - cut(names ? rows_name(r, i) : rows_text(r, i), &cell);
        printf("%*s%s%*s", right ? blanks : 0, "", text_get(&cell), right ? 0 : blanks, "");
    }
    putchar('\n');
}

// Asked twice: for the widths of its columns, then for them.
static bool print_table(Store *s, const char *sql, Error *e) {
    int widths[MOST_COLUMNS];
    Rows *r = rows_open(s, sql, e);
    if (!r) return false;
    int columns = rows_columns(r) < MOST_COLUMNS ? rows_columns(r) : MOST_COLUMNS;
    for (int i = 0; i < columns; i++) widths[i] = width(rows_name(r, i));
    while (rows_next(r))
        for (int i = 0; i < columns; i++) {
            int n = width(rows_text(r, i));
            if (n > widths[i]) widths[i] = n;
        }
    r = rows_end(r, true, e) ? rows_open(s, sql, e) : NULL;
    if (r) put_line(r, columns, widths, true);
    while (rows_next(r)) put_line(r, columns, widths, false);
    return rows_end(r, true, e);
}

// The lines of jsonl, which have no end of line within, as one array.
static bool print_array(Store *s, const char *sql, Error *e) {
    FILE *lines = tmpfile();
    if (!lines) return error_system(e, "sql: cannot make a temporary file: is the disk full?");
    bool ok = store_export_jsonl(s, sql, 0, lines, e);
    if (ok && fflush(lines)) ok = error_system(e, "sql: cannot write a temporary file: is the disk full?");
    rewind(lines);
    int c = ok ? getc(lines) : EOF;
    if (ok) putchar('[');
    for (int next; c != EOF; c = next) {
        next = getc(lines);
        if (c != '\n') putchar(c);
        else if (next != EOF) putchar(',');
    }
    if (ok) puts("]");
    fclose(lines);
    return ok;
}

static bool sql(void *options, CommandLine *line, Error *e) {
    StoreCommandOptions *o = options;
    char from_input[MOST_QUERY];
    bool piped = strcmp(line->words.items[0], "-") == 0;
    size_t n = piped ? fread(from_input, 1, MOST_QUERY, stdin) : 0;
    if (n == MOST_QUERY || memchr(from_input, 0, n))
        return error_input(e, "sql: the query on standard input must be text of less than %d bytes",
                           (int)MOST_QUERY);
    from_input[n] = 0;
    LOCAL_STORE *s = store_open(o->db, STORE_READ, &(StoreOptions){.most_bytes = MOST_MEMORY}, e);
    const char *query = piped ? from_input : line->words.items[0],
               *format = o->records.csv ? "csv" : o->format;
    if (!s) return false;
    if (o->records.json && o->records.csv) return error_input(e, "--json and --csv do not go together");
    if (o->records.json) return print_array(s, query, e);
    if (strcmp(format, "csv") == 0) return store_export_csv(s, query, 0, stdout, e);
    if (strcmp(format, "jsonl") == 0) return store_export_jsonl(s, query, 0, stdout, e);
    if (strcmp(format, "table") == 0) return print_table(s, query, e);
    return error_input(e, "sql: --format is '%s', must be table, csv or jsonl", format);
}

const Command command_sql = {.name = "sql",
                             .usage = "QUERY|- [--db FILE] [--json | --csv | --format table|csv|jsonl]",
                             .summary = "ask the store a question in SQL; nothing can be changed",
                             .arguments = {1, 1},
                             COMMAND_OPTIONS(SQL_OPTIONS, StoreCommandOptions),
                             .bulk = true,
                             .run = sql};

// --- merge -----------------------------------------------------------------------------------------------

// rows: for records, else NULL.
static bool merge_one(Store *s, const char *path, json_t *rows, int *code, Error *e) {
    StoreMerged m;
    if (!store_merge(s, path, &m, e)) return false;
    if (m.altered) *code = EXIT_FAILED;
    if (rows)
        return json_array_append_new(rows,
                                     json_pack("{s:o, s:s, s:I, s:I, s:I, s:I}", "store",
                                               json_from_text(path), "into", store_path(s), "runs",
                                               (json_int_t)m.runs, "samples", (json_int_t)m.samples, "differ",
                                               (json_int_t)m.differ, "altered", (json_int_t)m.altered)) == 0;
    printf("%s: %lld new runs, %lld new samples", SHOWN(path), (long long)m.runs, (long long)m.samples);
    if (m.differ)
        printf(", %lld samples differ and stay as in '%s'", (long long)m.differ, SHOWN(store_path(s)));
    puts(m.altered ? ": one of both stores was altered" : "");
    return true;
}

EMBED(store_sql, "harness/commands/store.sql")

// A store that is refused makes no store, and leaves one as it is.
static bool merge_all(char *const *paths, size_t count, const StoreCommandOptions *o, int *code, Error *e) {
    for (size_t i = 0; i < count; i++) {
        LOCAL_STORE *source = store_open(paths[i], STORE_READ, NULL, e);
        if (!source || !store_check_sums(source, e)) return false;
    }
    LOCAL_STORE *s = store_open(o->db, STORE_WRITE, NULL, e);
    bool ok = s != NULL;
    json_t *rows = records_asked(&o->records) ? json_array() : NULL;
    for (size_t i = 0; i < count && ok; i++) ok = merge_one(s, paths[i], rows, code, e);
    Rows *r = ok ? rows_named(s, store_sql, "machines", 0, e) : NULL;
    while (rows_next(r)) fprintf(rows ? stderr : stdout, "%s\n", SHOWN(rows_text(r, 0)));
    ok = rows_end(r, ok, e);
    if (ok && rows) return records_print(rows, NULL, &o->records, e);
    json_decref(rows);
    return ok;
}

static bool merge(void *options, CommandLine *line, Error *e) {
    StoreCommandOptions *o = options;
    LOCAL(globfree) glob_t found = {0};
    if ((line->words.count > 0) == (o->stores != NULL)) return command_misused(line->command, e);
    if (!o->stores)
        return merge_all((char *const *)line->words.items, (size_t)line->words.count, o, &line->code, e);
    if (!stored_match(o->stores, &found, e)) return false;
    return merge_all(found.gl_pathv, found.gl_pathc, o, &line->code, e);
}

static const Command MERGE = {.name = "store merge",
                              .usage = "DB...|--stores 'DIR/*.db' [--db FILE]",
                              .summary = "bring all that other stores hold into one",
                              .arguments = {0, WORDS_MAX},
                              COMMAND_OPTIONS(MERGE_OPTIONS, StoreCommandOptions),
                              .run = merge};

// --- gc --------------------------------------------------------------------------------------------------

static bool collect(Store *s, const Words *names, const Records *records, Error *e) {
    int64_t runs[WORDS_MAX];
    StoreGarbage g;
    for (int i = 0; i < names->count; i++)
        if (!stored_run(s, names->items[i], &runs[i], e) || !store_claim(s, runs[i], e)) return false;
    if (!store_gc(s, runs, names->count, &g, e)) return false;
    if (records_asked(records))
        return records_print(json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "runs", names->count,
                                       "outputs", (json_int_t)g.outputs, "prompts", (json_int_t)g.prompts,
                                       "datasets", (json_int_t)g.datasets, "models", (json_int_t)g.models,
                                       "environments", (json_int_t)g.environments, "bytes_before",
                                       (json_int_t)g.bytes_before, "bytes_after", (json_int_t)g.bytes_after),
                             NULL, records, e);
    printf("deleted %d runs, %lld outputs, %lld prompts, %lld datasets, %lld models, %lld environments\n",
           names->count, (long long)g.outputs, (long long)g.prompts, (long long)g.datasets,
           (long long)g.models, (long long)g.environments);
    printf("%.1f MB are now %.1f MB\n", (double)g.bytes_before / 1e6, (double)g.bytes_after / 1e6);
    return true;
}

static bool gc(void *options, CommandLine *line, Error *e) {
    StoreCommandOptions *o = options;
    StoreMode mode = file_exists(o->db) ? STORE_WRITE : STORE_READ; // gc makes no store
    LOCAL_STORE *s = store_open(o->db, mode, NULL, e);
    return s && (!o->check || store_check(s, e)) && collect(s, &line->words, &o->records, e);
}

static const Command GC = {.name = "store gc",
                           .usage = "[RUN...] [--check] [--db FILE]",
                           .summary =
                               "delete runs that are named, and what nothing refers to; give the space back",
                           .arguments = {0, WORDS_MAX},
                           COMMAND_OPTIONS(CARE_OPTIONS, StoreCommandOptions),
                           .run = gc};

const Command command_store = {
    .name = "store",
    .usage = "export|import|merge|gc ...",
    .summary = "write runs for other programs, take in theirs, merge stores, delete runs",
    .parts = (const Command *const[]){&command_store_export, &command_store_import, &MERGE, &GC, NULL}};
