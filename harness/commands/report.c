// All that is stored of a run, on one page.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/estimates.h"
#include "harness/analysis/stored.h"
#include "harness/cli/records.h"
#include "harness/papers/computed.h"
#include "plots/plots.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *run, *format, *output, *db;
    PredictionArguments of;
    Choice choice;
    bool force;
    Records records;
} ReportArguments;

#define AT(name) offsetof(ReportArguments, name)
static const Arg OPTIONS[] = {
    {"run", ARG_WORD, AT(run), .help = "a number or a name", .value = "RUN", .fallback = "the newest"},
    {"format", ARG_WORD, AT(format), .help = "of the page", .value = "html|md|tex",
     .fallback = "as FILE ends, or html"},
    {"output", ARG_WORD, AT(output), .help = "where to", .value = "FILE", .fallback = "report.html",
     .letter = 'o'},
    ARG_FORCE(AT(force)),
    STORE_OPTION(AT(db)),
    CHOICE_OPTIONS(AT, choice),
    PRICED_OPTIONS(AT, of),
    RECORDS_OPTIONS(AT(records)), // of the files written
};

// The page, then how many figures are next to it, and where.
static void tell_files(const Output *out, const char *path, int64_t run) {
    size_t files = 0;
    while (output_path(out, files)) files++;
    printf("%s: run %lld", SHOWN(path), (long long)run);
    if (files > 1) {
        const char *first = SHOWN(output_path(out, 0));
        printf(", with %zu files of figures in %.*s", files - 1, (int)(strrchr(first, '/') - first), first);
    }
    puts("");
}

static bool run(void *options, CommandLine *line, Error *e) {
    ReportArguments *a = options;
    ReportOptions o = {0};
    bool priced;
    int64_t which, against = 0, surface = 0;
    const Words *runs = &line->words;
    if (a->run && runs->count)
        return error_input(e, "report: a run is named by --run or as a word, not by both");
    char own[32];
    const char *name = records_format(a->format, a->output, "html");
    int format = text_among(name, page_format_names, PAGE_FORMATS);
    if (format < 0) return error_input(e, "a report cannot be '%s', but html, md or tex", name);
    if (!prediction_asked(&a->of, &priced, e)) return false;
    o.format = (PageFormat)format;
    snprintf(own, sizeof own, "report.%s", page_format_names[o.format]);
    const char *path = a->output ? a->output : own;
    LOCAL_STORE *store = store_open(a->db, STORE_READ, NULL, e);
    LOCAL_TEXT computed = {0}, notes = {0};
    o.notes = &notes;
    bool ok = store && stored_run(store, runs->count ? runs->items[0] : a->run, &which, e) &&
              (runs->count < 2 || stored_run(store, runs->items[1], &against, e)) &&
              (!against || estimates_ensure(&store, against, ESTIMATES_OF_TASKS, e)) &&
              estimates_ensure(&store, which, ESTIMATES_OF_TASKS, e) &&
              choice_apply(&a->choice, store, which, e) &&
              rows_named_int(store, report_sql, "surface", which, &surface, e) &&
              computed_json(store, which,
                            &(ComputedWanted){.fits = true,
                                              .tables = true,
                                              .prediction = priced ? &a->of : NULL,
                                              .against = against,
                                              .surface = surface},
                            &computed, e);
    o.computed = text_get(&computed);
    o.against = against;
    LOCAL(output_release) Output out = {.force = a->force};
    output_reads(&out, a->db);
    ok = ok && report_write(store, which, &o, path, &out, e) && output_finish(&out, e);
    if (ok) fputs(text_get(&notes), stderr);
    if (ok && records_asked(&a->records))
        ok = records_print(json_pack("{s:o, s:I, s:s, s:o}", "output", json_from_text(path), "run",
                                     (json_int_t)which, "format", page_format_names[o.format], "files",
                                     records_files(&out)),
                           NULL, &a->records, e);
    else if (ok && output_path(&out, 0)) tell_files(&out, path, which);
    return ok;
}

const Command command_report = {
    .name = "report",
    .usage = "[RUN [OTHER]] [OPTIONS]",
    .arguments = {0, 2},
    .summary = "write a page of a stored run: verdict, tables, figures, how to repeat it",
    COMMAND_OPTIONS(OPTIONS, ReportArguments),
    .run = run};
