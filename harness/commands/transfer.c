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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST_BYTES = (size_t)1 << 30; // of a file that is imported

typedef struct {
    const char *db, *run, *format, *what, *output;
    const char *name, *model, *dataset, *method, *baseline, *drafts;
    Words lists;
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
    STORE_OPTION(AT(db)),
    CHOICE_OPTIONS(AT, choice),
    ARG_FORCE(AT(force)),
};
static const Arg IMPORT_OPTIONS[] = {
    STORE_OPTION(AT(db)),
    {"name", ARG_WORD, AT(name), .help = "of the run", .value = "TEXT",
     .fallback = "as exported, or the file's"},
    {"method", ARG_WORD, AT(method), .help = "that gave the answers, where the file doesn't tell",
     .value = "NAME", .fallback = "imported", .literal = true},
    {"model", ARG_WORD, AT(model), .help = "that gave them, too", .value = "NAME", .fallback = "imported",
     .literal = true},
    {"dataset", ARG_WORD, AT(dataset), .help = "of the questions, too", .value = "NAME",
     .fallback = "imported; of spec-bench, its name"},
    {"baseline", ARG_WORD, AT(baseline), .help = "the autoregressive answers or records", .value = "FILE"},
    {"list", ARG_WORDS, AT(lists), .help = "acceptance: a key of recorded acceptance; several times",
     .value = "KEY", .fallback = "acc_ngram, acc_eagle"},
    {"drafts", ARG_WORD, AT(drafts), .help = "acceptance: tokens tried in a step, a point for each number",
     .value = "N,...", .fallback = "1,3,5,7", .literal = true},
};

// --- export ----------------------------------------------------------------------------------------------

EMBED(export_samples, "harness/commands/export_samples.sql")
EMBED(export_steps, "harness/commands/export_steps.sql")

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

static bool find_table(const char *what, int *out, Error *e) {
    for (*out = 0; *out < TABLE_COUNT; (*out)++)
        if (strcmp(TABLES[*out].what, what) == 0) return true;
    return error_input(e, "export: --what is '%s', must be results, samples, steps or fits", what);
}

static bool write_rows(Store *s, int64_t run, const TransferOptions *o, int table, FILE *out, Error *e) {
    bool jsonl = strcmp(o->format, "jsonl") == 0;
    if (jsonl && strcmp(o->what, "steps") == 0) return store_export_steps(s, run, out, e);
    return (jsonl ? store_export_jsonl : store_export_csv)(s, TABLES[table].sql, run, out, e);
}

// A reader that left early isn't a failure; main treats standard output the same way.
static bool print_rows(Store *s, int64_t run, const TransferOptions *o, int table, Error *e) {
    return write_rows(s, run, o, table, stdout, e) || (ferror(stdout) && file_reader_left(STDOUT_FILENO));
}

static bool export_rows(Store *s, int64_t run, const TransferOptions *o, Error *e) {
    int table;
    if (!find_table(o->what, &table, e)) return false;
    if (!o->output || strcmp(o->output, "-") == 0) return print_rows(s, run, o, table, e);
    const OutputKind *kind = strcmp(o->format, "jsonl") == 0 ? &TABLES[table].jsonl : &TABLES[table].csv;
    Output out = {.force = o->force};
    output_reads(&out, o->db);
    FILE *to = output_open(&out, o->output, kind, e);
    bool ok = to && output_close(&out, write_rows(s, run, o, table, to, e), e) && output_finish(&out, e);
    output_release(&out);
    return ok;
}

// DIR/3-lookahead-pass0.jsonl. Each is finished by itself: there may be thousands.
static bool export_answers(Store *s, const Rows *r, const TransferOptions *o, Error *e) {
    static const OutputKind ANSWERS = {.start = "{\"question_id\":"};
    char path[PATH_MAX];
    int lines, n = snprintf(path, sizeof path, "%s/%lld-%s-pass%lld.jsonl", o->output,
                            (long long)rows_int(r, 1), rows_text(r, 2), (long long)rows_int(r, 3));
    if (n < 0 || (size_t)n >= sizeof path)
        return error_input(e, "export: the path '%s' is too long", o->output);
    Output out = {.force = o->force};
    output_reads(&out, o->db);
    FILE *to = output_open(&out, path, &ANSWERS, e);
    bool ok = to &&
              output_close(
                  &out, store_export_specbench(s, rows_int(r, 0), (int)rows_int(r, 3), to, &lines, e), e) &&
              output_finish(&out, e);
    output_release(&out);
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

// The format that was asked for, else the one that the file's name ends in.
static const char *format_of(const TransferOptions *o) {
    if (o->format) return o->format;
    return o->output && text_ends(o->output, ".jsonl") ? "jsonl" : "csv";
}

static bool export_run(Store *s, int64_t run, const TransferOptions *o, Error *e) {
    if (strcmp(o->format, "spec-bench") == 0) return export_passes(s, run, o, e);
    if (strcmp(o->format, "csv") == 0 || strcmp(o->format, "jsonl") == 0) return export_rows(s, run, o, e);
    return error_input(e, "store export: --format is '%s', must be csv, jsonl or spec-bench", o->format);
}

static bool export(void *options, CommandLine *line, Error *e) {
    TransferOptions *o = options;
    int64_t run;
    o->format = format_of(o);
    Store *s = store_open(o->db, STORE_READ, NULL, e);
    bool ok = s && stored_run(s, line->words.items[0], &run, e) && choice_apply(&o->choice, s, run, e) &&
              export_run(s, run, o, e);
    store_close(s);
    return ok;
}

const Command command_store_export = {
    .name = "store export",
    .usage = "[RUN] [--format NAME] [-o FILE|DIR] [OPTIONS]",
    .summary = "write a run for other programs: CSV, JSON lines, answers as Spec-Bench reads them",
    .arguments = {0, 1},
    .lesson =
        "RUN is a number, or a name, of which the newest run is taken; without it, the newest of all. A\n"
        "file that is not such an export is not replaced without --force. Formats: csv, jsonl; spec-bench\n"
        "(answers).\n"
        "\n"
        "  outpace store export --what samples > samples.csv\n"
        "  outpace store export --what steps -o steps.jsonl                 read by 'store import steps'\n"
        "  outpace store export --format spec-bench -o answers              for Spec-Bench's "
        "evaluation/speed.py\n",
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

// The kinds of records, and other names of them.
static const struct {
    const char *name;
    RecordKind kind;
} KINDS[] = {
    {"vllm", RECORDS_VLLM},           {"aiperf", RECORDS_VLLM},
    {"bench-serve", RECORDS_VLLM},    {"specdec-bench", RECORDS_SPECDEC},
    {"specforge", RECORDS_SPECFORGE}, {"spec-bench", RECORDS_SPECBENCH},
};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static bool import_file(Store *s, const char *kind, const StoreImport *from, const StoreImport *baseline,
                        StoreImported *out, Error *e) {
    int i = 0;
    if (strcmp(kind, "steps") == 0) return store_import_steps(s, from, out, e);
    while (strcmp(kind, KINDS[i].name) != 0) i++;
    return store_import_records(s, KINDS[i].kind, from, baseline->bytes ? baseline : NULL, out, e);
}

static bool import_into(const char *db, StoreMode mode, const char *kind, const StoreImport *from,
                        const StoreImport *baseline, StoreImported *out, Error *e) {
    Store *s = store_open(db, mode, NULL, e);
    bool ok = s && store_begin(s, e) && import_file(s, kind, from, baseline, out, e) &&
              estimates_make(s, out->run, ESTIMATES_OF_TASKS, e) && store_commit(s, e);
    if (!ok && s) store_rollback(s);
    store_close(s);
    return ok;
}

// --- recorded acceptance ---------------------------------------------------------------------------------

// A list of a method of text, by its name: no model drafts.
static bool of_text_alone(const char *list) {
    return strstr(list, "ngram") || strstr(list, "suffix") || strstr(list, "lookup");
}

typedef struct Walks {
    char *words[WORDS_MAX]; // (count): a command line; those from `own` on are this list's
    int count, own;
} Walks;

static bool add_word(Walks *w, char *word, Error *e) {
    if (w->count < WORDS_MAX - 1) return w->words[w->count++] = word, true;
    mem_free(word);
    return error_input(e, "store import: %d lists and numbers of tokens are too many", WORDS_MAX);
}

// A method for each number of a list of them, "1,3,5".
static bool add_walks(Walks *w, const char *list, const char *drafts, Error *e) {
    bool ok = true;
    for (const char *at = drafts; ok && *at; at += strspn(at, ",")) {
        int n = (int)strcspn(at, ",");
        ok = add_word(w, mem_printf("--method"), e) &&
             add_word(w,
                      mem_printf("recorded:list=%s,draft=%.*s%s", list, n, at,
                                 of_text_alone(list) ? ",model=off" : ""),
                      e);
        at += n;
    }
    return ok;
}

// A walk over the positions of every text, by replay: each step emits as many tokens as are recorded where it
// begins.
static bool import_acceptance(const TransferOptions *o, const char *file, int *code, Error *e) {
    static const Words LISTS = {{"acc_ngram", "acc_eagle"}, 2};
    const Words *lists = o->lists.count ? &o->lists : &LISTS;
    const char *const given[] = {"replay", "--tokens", file,
                                 "--db",   o->db,      "--model",
                                 o->model, "--name",   o->name ? o->name : "acceptance"};
    Walks w = {.count = 0};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof given / sizeof *given; i++)
        ok = add_word(&w, mem_text(given[i], strlen(given[i])), e);
    for (int i = 0; ok && i < lists->count; i++)
        ok = add_word(&w, mem_printf("--list"), e) && add_word(&w, mem_printf("%s", lists->items[i]), e) &&
             add_walks(&w, lists->items[i], o->drafts, e);
    char **argv = mem_new((size_t)w.count + 1, sizeof *argv); // the command reorders its own
    memcpy(argv, w.words, (size_t)w.count * sizeof *argv);
    ok = ok && command_execute(&command_replay, w.count, argv, code, e);
    for (int i = 0; i < w.count; i++) mem_free(w.words[i]);
    mem_free(argv);
    return ok;
}

// --- all imports -----------------------------------------------------------------------------------------

static bool check_kind(const char *kind, Error *e) {
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(kind, KINDS[i].name) == 0) return true;
    return strcmp(kind, "steps") == 0 ||
           error_input(
               e,
               "store import: '%s' isn't a format; known are steps, acceptance, spec-bench, vllm, aiperf, "
               "bench-serve, specdec-bench and specforge",
               kind);
}

static bool import(void *options, CommandLine *line, Error *e) {
    TransferOptions *o = options;
    if (strcmp(line->words.items[0], "acceptance") == 0)
        return import_acceptance(o, line->words.items[1], &line->code, e);
    if (!check_kind(line->words.items[0], e)) return false;
    StoreImport from = {.name = o->name, .argc = line->argc, .argv = line->argv, .model = o->model};
    bool answers = strcmp(line->words.items[0], "spec-bench") == 0;
    from.dataset = o->dataset ? o->dataset : answers ? "spec-bench" : "imported";
    from.method = o->method;
    StoreImport baseline = from;
    baseline.method = "autoregressive";
    StoreImported done;
    bool ok =
        read_file(line->words.items[1], &from, e) && (!o->baseline || read_file(o->baseline, &baseline, e));
    // Where no store is yet, a file that is refused leaves none.
    if (ok && !file_exists(o->db))
        ok = import_into(o->db, STORE_TRIAL, line->words.items[0], &from, &baseline, &done, e);
    ok = ok && import_into(o->db, STORE_WRITE, line->words.items[0], &from, &baseline, &done, e);
    mem_free((char *)(size_t)from.bytes);
    mem_free((char *)(size_t)baseline.bytes);
    if (ok) printf("run %lld: %d samples with %d steps\n", (long long)done.run, done.samples, done.steps);
    if (ok && done.promised > done.samples)
        printf("the run had %lld samples when it was exported: the others are not in the file\n",
               (long long)done.promised);
    Text alone = {0};
    if (ok) stored_alone(done.alone, &alone);
    fputs(text_get(&alone), stdout);
    text_release(&alone);
    return ok;
}

const Command command_store_import = {
    .name = "store import",
    .usage = "KIND FILE [OPTIONS]",
    .summary = "take in steps and records of other engines, or answers that Spec-Bench published",
    .arguments = {2, 2},
    .lesson =
        "Steps of other engines go to the same tables as our own: docs/other-engines.md describes a line.\n"
        "An import is a run of its own, and the same file is imported once. A file of 'outpace store\n"
        "export' becomes the run that it was, with its settings, baselines, machine, failures and flags.\n"
        "\n"
        "Acceptance that was recorded at every position of a text becomes a point for each list and number\n"
        "of tokens tried: docs/other-engines.md. Rows whose lists have not as many entries are left out.\n"
        "\n"
        "Records of others: vllm (metrics.speculative_decoding of responses; also aiperf), bench-serve (of\n"
        "'vllm bench serve'), specdec-bench (acceptance_rate.json, or responses with acceptance_lengths),\n"
        "specforge (data.json). --baseline is the same without speculation. A file may be gzipped.\n"
        "\n"
        "  outpace store import steps other-engine.jsonl --name vllm\n"
        "  outpace store import vllm responses.jsonl --method eagle3 --dataset mt-bench\n"
        "  outpace store import acceptance gsm8k.jsonl --model llama-3.1-8b --drafts 3,7\n"
        "  outpace store import spec-bench eagle.jsonl --baseline ar.jsonl --method eagle --model vicuna\n",
    COMMAND_OPTIONS(IMPORT_OPTIONS, TransferOptions),
    .run = import};
