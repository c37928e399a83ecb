// Out of the store and into it, in the formats of others.
#include "harness/cli/command.h"

#include "datasets/format.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/estimates.h"
#include "harness/analysis/stored.h"
#include "results/rows.h"
#include "results/transfer/transfer.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST_BYTES = (size_t)1 << 30; // of a file that is imported

typedef struct {
    const char *run, *format, *what, *output;
    AcceptanceOptions of; // of an import of acceptance; db, name, model of any
    const char *dataset, *method, *baseline;
    Choice choice;
    bool force;
} TransferOptions;

#define AT(name) offsetof(TransferOptions, name)
static const Arg EXPORT_OPTIONS[] = {
    {"format", ARG_WORD, AT(format), .help = "of the output", .value = "NAME", .fallback = "by -o, else csv"},
    {"what", ARG_WORD, AT(what), .help = "a line a point, prompt, step or fit (docs/other-engines.md)",
     .value = "results|samples|steps|fits", .fallback = "results", .literal = true},
    {"output", ARG_WORD, AT(output), .help = "spec-bench: a directory", .value = "FILE|DIR",
     .fallback = "standard output", .letter = 'o'},
    STORE_OPTION(AT(of.db)),
    CHOICE_OPTIONS(AT, choice),
    ARG_FORCE(AT(force)),
};
static const Arg IMPORT_OPTIONS[] = {
    STORE_OPTION(AT(of.db)),
    {"name", ARG_WORD, AT(of.name), .help = "of the run", .value = "TEXT",
     .fallback = "as exported, or the file's"},
    {"method", ARG_WORD, AT(method), .help = "that gave the answers, where the file doesn't tell",
     .value = "NAME", .fallback = "imported", .literal = true},
    {"model", ARG_WORD, AT(of.model), .help = "that gave them, too", .value = "NAME", .fallback = "imported",
     .literal = true},
    {"dataset", ARG_WORD, AT(dataset), .help = "of the questions, too", .value = "NAME",
     .fallback = "imported; of spec-bench, its name"},
    {"baseline", ARG_WORD, AT(baseline), .help = "the autoregressive answers or records", .value = "FILE"},
    {"list", ARG_WORDS, AT(of.lists), .help = "acceptance: a key of recorded acceptance; several times",
     .value = "KEY", .fallback = "acc_ngram, acc_eagle"},
    {"drafts", ARG_WORD, AT(of.drafts), .help = "acceptance: tokens tried in a step, a point for each number",
     .value = "N,...", .fallback = "1,3,5,7", .literal = true},
};

// --- export ----------------------------------------------------------------------------------------------

EMBED(export_samples, "harness/commands/export_samples.sql")
EMBED(export_steps, "harness/commands/export_steps.sql")
EMBED(export_perfetto, "harness/commands/export_perfetto.sql")

#define TRACE_START "{\"displayTimeUnit\": \"ms\", \"traceEvents\": ["

// The tables that can be written, and how files of them begin.
static const struct {
    const char *what;
    OutputKind csv, jsonl;
    const char *sql;
} TABLES[] = {
    {"results",
     {.start = "point_id,run_id,"},
     {.start = "{\"point_id\":"},
     "SELECT * FROM result WHERE run_id = ?1 ORDER BY number"},
    {"samples", {.start = "point,label,dataset,prompt,"}, {.start = "{\"point\":"}, export_samples},
    {"steps",
     {.start = "point,label,prompt,turn,"},
     {.start = "{\"model\":", .holds = "\"flags\":"},
     export_steps},
    {"fits",
     {.start = "fit_id,run_id,"},
     {.start = "{\"fit_id\":"},
     "SELECT * FROM fitted WHERE run_id = ?1 ORDER BY fit_id"},
};
enum { TABLE_COUNT = sizeof TABLES / sizeof *TABLES };

// A line an event.
static bool write_trace(Store *s, int64_t run, FILE *out, Error *e) {
    Rows *r = rows_ask(s, export_perfetto, run, e);
    fputs(TRACE_START, out);
    for (bool first = true; !ferror(out) && rows_next(r); first = false)
        fprintf(out, "%s%s", first ? "\n" : ",\n", rows_text(r, 0));
    fputs("\n]}\n", out);
    return rows_end(r, true, e) &&
           (!ferror(out) || error_system(e, "cannot write the export: is the disk full?"));
}

static bool write_rows(Store *s, int64_t run, const TransferOptions *o, int table, FILE *out, Error *e) {
    bool jsonl = strcmp(o->format, "jsonl") == 0;
    if (strcmp(o->format, "perfetto") == 0) return write_trace(s, run, out, e);
    if (jsonl && strcmp(o->what, "steps") == 0) return store_export_steps(s, run, out, e);
    return (jsonl ? store_export_jsonl : store_export_csv)(s, TABLES[table].sql, run, out, e);
}

static bool export_rows(Store *s, int64_t run, const TransferOptions *o, Error *e) {
    int table = 0;
    while (table < TABLE_COUNT && strcmp(TABLES[table].what, o->what) != 0) table++;
    if (table == TABLE_COUNT)
        return error_input(e, "export: --what is '%s', must be results, samples, steps or fits", o->what);
    // A reader that left early isn't a failure; main treats standard output the same way.
    if (!o->output || strcmp(o->output, "-") == 0)
        return write_rows(s, run, o, table, stdout, e) || (ferror(stdout) && file_reader_left(STDOUT_FILENO));
    static const OutputKind TRACE = {.start = TRACE_START};
    const OutputKind *kind = strcmp(o->format, "perfetto") == 0 ? &TRACE
                             : strcmp(o->format, "jsonl") == 0  ? &TABLES[table].jsonl
                                                                : &TABLES[table].csv;
    LOCAL(output_release) Output out = {.force = o->force};
    output_reads(&out, o->of.db);
    FILE *to = output_open(&out, o->output, kind, e);
    return to && output_close(&out, write_rows(s, run, o, table, to, e), e) && output_finish(&out, e);
}

// DIR/3-lookahead-pass0.jsonl. Each is finished by itself: there may be thousands.
static bool export_answers(Store *s, const Rows *r, const TransferOptions *o, Error *e) {
    static const OutputKind ANSWERS = {.start = "{\"question_id\":"};
    char path[PATH_MAX];
    int lines, n = snprintf(path, sizeof path, "%s/%lld-%s-pass%lld.jsonl", o->output,
                            (long long)rows_int(r, 1), rows_text(r, 2), (long long)rows_int(r, 3));
    if (n < 0 || (size_t)n >= sizeof path)
        return error_input(e, "export: the path '%s' is too long", o->output);
    LOCAL(output_release) Output out = {.force = o->force};
    output_reads(&out, o->of.db);
    FILE *to = output_open(&out, path, &ANSWERS, e);
    bool ok = to &&
              output_close(
                  &out, store_export_specbench(s, rows_int(r, 0), (int)rows_int(r, 3), to, &lines, e), e) &&
              output_finish(&out, e);
    if (ok) printf("%s: %d answers\n", SHOWN(path), lines);
    return ok;
}

static bool export_passes(Store *s, int64_t run, const TransferOptions *o, Error *e) {
    if (!o->output)
        return error_input(
            e, "store export: --format spec-bench needs -o DIR: it writes a file of each point and pass");
    Rows *r = rows_open(
        s,
        "SELECT DISTINCT point.id, number, method, pass FROM point JOIN sample ON point_id = point.id"
        " WHERE run_id = ?1 ORDER BY number, pass",
        e);
    rows_bind_int(r, 1, run);
    bool ok = true;
    while (ok && rows_next(r)) ok = export_answers(s, r, o, e);
    return rows_end(r, ok, e);
}

static bool export(void *options, CommandLine *line, Error *e) {
    TransferOptions *o = options;
    int64_t run;
    if (!o->format) o->format = o->output && text_ends(o->output, ".jsonl") ? "jsonl" : "csv";
    bool answers = strcmp(o->format, "spec-bench") == 0, known = answers || strcmp(o->format, "csv") == 0 ||
                                                                 strcmp(o->format, "jsonl") == 0 ||
                                                                 strcmp(o->format, "perfetto") == 0;
    LOCAL_STORE *s = store_open(o->of.db, STORE_READ, NULL, e);
    if (!s || !stored_run(s, line->words.items[0], &run, e) || !choice_apply(&o->choice, s, run, e))
        return false;
    if (!known)
        return error_input(e, "store export: --format is '%s', must be csv, jsonl, perfetto or spec-bench",
                           o->format);
    return (answers ? export_passes : export_rows)(s, run, o, e);
}

const Command command_store_export = {
    .name = "store export",
    .usage = "[RUN] [--format NAME] [-o FILE|DIR] [OPTIONS]",
    .summary = "write a run for other programs: CSV, JSON lines, answers as Spec-Bench reads them",
    .arguments = {0, 1},
    COMMAND_OPTIONS(EXPORT_OPTIONS, TransferOptions),
    .bulk = true,
    .run = export};

// --- import ----------------------------------------------------------------------------------------------

// Gzipped bytes are unpacked.
static bool read_file(const char *path, StoreImport *out, Error *e) {
    char *bytes, *unpacked = NULL;
    if (!file_read(path, MOST_BYTES, &bytes, &out->size, e)) return false;
    bool packed = gzip_is(bytes, out->size),
         ok = !packed || gzip_expand(bytes, out->size, path, MOST_BYTES, &unpacked, &out->size, e);
    if (packed) mem_free(bytes);
    out->path = path;
    out->bytes = packed ? unpacked : bytes;
    return ok;
}

// Formats: kinds of records, by all their names, and others.
enum { KIND_STEPS = -1, KIND_ACCEPTANCE = -2 };
static const struct {
    const char *name;
    int kind; // RecordKind, or one of these
} KINDS[] = {
    {"steps", KIND_STEPS},
    {"acceptance", KIND_ACCEPTANCE},
    {"spec-bench", RECORDS_SPECBENCH},
    {"vllm", RECORDS_VLLM},
    {"aiperf", RECORDS_VLLM},
    {"bench-serve", RECORDS_VLLM},
    {"specdec-bench", RECORDS_SPECDEC},
    {"specforge", RECORDS_SPECFORGE},
};

static bool import_into(const char *db, StoreMode mode, int kind, const StoreImport *from,
                        const StoreImport *baseline, StoreImported *out, Error *e) {
    LOCAL_STORE *s = store_open(db, mode, NULL, e);
    const StoreImport *base = baseline->bytes ? baseline : NULL;
    return s && store_begin(s, e) &&
           (kind == KIND_STEPS ? store_import_steps(s, from, out, e)
                               : store_import_records(s, (RecordKind)kind, from, base, out, e)) &&
           estimates_make(s, out->run, ESTIMATES_OF_TASKS, e) && store_commit(s, e);
}

static bool import(void *options, CommandLine *line, Error *e) {
    TransferOptions *o = options;
    const char *name = line->words.items[0], *file = line->words.items[1];
    size_t at = 0;
    while (at < sizeof KINDS / sizeof *KINDS && strcmp(KINDS[at].name, name) != 0) at++;
    if (at == sizeof KINDS / sizeof *KINDS)
        return error_input(
            e,
            "store import: '%s' isn't a format; known are steps, acceptance, spec-bench, vllm, aiperf, "
            "bench-serve, specdec-bench and specforge",
            name);
    int kind = KINDS[at].kind;
    if (kind == KIND_ACCEPTANCE) return replay_acceptance(file, &o->of, line, e);
    StoreImport from = {.name = o->of.name, .argc = line->argc, .argv = line->argv, .model = o->of.model};
    from.dataset = o->dataset ? o->dataset : kind == RECORDS_SPECBENCH ? "spec-bench" : "imported";
    from.method = o->method;
    StoreImport baseline = from;
    baseline.method = "autoregressive";
    StoreImported done;
    bool ok = read_file(file, &from, e) && (!o->baseline || read_file(o->baseline, &baseline, e));
    // Where no store is yet, a file that is refused leaves none.
    if (ok && !file_exists(o->of.db))
        ok = import_into(o->of.db, STORE_TRIAL, kind, &from, &baseline, &done, e);
    ok = ok && import_into(o->of.db, STORE_WRITE, kind, &from, &baseline, &done, e);
    MEM_FREE(from.bytes, baseline.bytes);
    if (ok) printf("run %lld: %d samples with %d steps\n", (long long)done.run, done.samples, done.steps);
    if (ok && done.promised > done.samples)
        printf("the run had %lld samples when it was exported: the others are not in the file\n",
               (long long)done.promised);
    LOCAL_TEXT alone = {0};
    if (ok) stored_alone(done.alone, &alone);
    fputs(text_get(&alone), stdout);
    return ok;
}

const Command command_store_import = {
    .name = "store import",
    .usage = "KIND FILE [OPTIONS]",
    .summary = "take in steps and records of other engines, or answers that Spec-Bench published",
    .arguments = {2, 2},
    COMMAND_OPTIONS(IMPORT_OPTIONS, TransferOptions),
    .run = import};
