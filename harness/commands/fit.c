// Fits (alpha, f) of Lookahead's law to measured points and prints the result, and how far to trust it; or
// a machine to measured steps.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/analysis/choice.h"
#include "harness/price/prediction.h"
#include "harness/analysis/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *points, *law, *bonus, *filling; // bonus, filling: NULL where not given
    const char *db;
    SurfaceArguments of; // with --surface; its seed, json and force are those of points, too
    int resamples;
    Choice choice;
    bool tsv;
} FitArguments;

#define AT(name) offsetof(FitArguments, name)
static const Arg OPTIONS[] = {
    {"points", ARG_WORD, AT(points), .help = "points of S to fit", .value = "FILE.tsv", .letter = 'p'},
    {"db", ARG_WORD, AT(db), .help = "the store that RUN is in", .value = "FILE", .fallback = STORE_DEFAULT},
    {"law", ARG_WORD, AT(law), .help = "b = W = G, or each step's own candidates", .value = "paper|corrected",
     .fallback = "paper", .literal = true},
    {"bonus", ARG_WORD, AT(bonus), .help = "tokens of a full match: N or N - 1", .value = "kept|dropped",
     .fallback = "the run's; of points kept"},
    {"filling", ARG_WORD, AT(filling), .help = "tokens of an output, whose first N - 2 steps emit one each",
     .value = "none|N", .fallback = "the run's; of points none"},
    {"surface", ARG_WORD, AT(of.surface), .help = "steps measured by bench --csv: fit a machine to them",
     .value = "FILE.csv"},
    CHOICE_OPTIONS(AT, choice),
    {"shape", ARG_WORD, AT(of.shape),
     .help = "with --surface: a shape in place of a model, its weights of 16 bits", .value = "SHAPE"},
    {"on", ARG_WORD, AT(of.machine),
     .help = "with --surface: the machine's data sheet, of configs/hardware or a file", .value = "MACHINE"},
    {"save", ARG_WORD, AT(of.save), .help = "with --surface: write the fitted machine, for simulate --on",
     .value = "FILE.json"},
    ARG_FORCE(AT(of.force)),
    {"resamples", ARG_INT, AT(resamples), 100, 100000, "1000",
     .help = "of the bootstrap behind the intervals", .value = "N"},
    {"seed", ARG_SEED, AT(of.seed), .help = "of the bootstrap, and of the points held out", .value = "N",
     .fallback = "0"},
    {"tsv", ARG_FLAG, AT(tsv), .help = "print the run's points, as --points reads them, and fit nothing"},
    {"json", ARG_FLAG, AT(of.json), .help = "print one JSON object; of a run, one a set of points"},
};

// --- the request ---------------------------------------------------------------------------------------

static bool read_choice(const char *option, const char *text, const char *no, const char *yes, bool *out,
                        Error *e) {
    *out = strcmp(text, yes) == 0;
    return *out || strcmp(text, no) == 0 ||
           error_input(e, "fit: --%s is '%s', must be %s or %s", option, text, no, yes);
}

// o holds the values that are known without options.
static bool read_options(const FitArguments *a, FitOptions *o, Error *e) {
    bool corrected;
    o->resamples = a->resamples, o->level = 0.95, o->seed = a->of.seed;
    if (!read_choice("law", a->law, "paper", "corrected", &corrected, e)) return false;
    o->law = corrected ? FIT_CORRECTED : FIT_PAPER;
    if (a->bonus && !read_choice("bonus", a->bonus, "kept", "dropped", &o->bonus_dropped, e)) return false;
    if (!a->filling || strcmp(a->filling, "none") == 0) return true;
    char *end;
    o->output = strtod(a->filling, &end);
    return (end != a->filling && *end == 0 && o->output >= 1 && o->output <= 1e9) ||
           error_input(e, "fit: --filling is '%s', must be none or the tokens of an output, 1 to 1e9",
                       a->filling);
}

// --- points ----------------------------------------------------------------------------------------------

static bool fit_points(const FitArguments *a, const char *title, const Points *points, FitOptions *o,
                       Fit *fit, Error *e) {
    if (!read_options(a, o, e) || !fit_run(points, o, fit, e)) return false;
    LOCAL_TEXT line = {0};
    bool ok = !a->of.json || fit_report_json(title, o, fit, &line);
    if (!a->of.json) fit_report(title, o, fit);
    else if (ok) puts(text_get(&line));
    return ok;
}

// --- a stored run ----------------------------------------------------------------------------------------

// A set that cannot be fitted does not keep the others from it; if none can, the first gives the reason.
static bool fit_stored(const FitArguments *a, const char *which, Error *e) {
    int64_t run;
    StoredSets sets = {0};
    FitOptions o = {0};
    Error first = {0};
    size_t fitted = 0;
    if (!read_options(a, &o, e)) return false;
    LOCAL_MEMORY StoredFit *fits = NULL;
    Store *store = store_open(a->db, STORE_READ, NULL, e);
    bool ok = store && stored_run(store, which, &run, e) && choice_apply(&a->choice, store, run, e) &&
              stored_sets(store, run, &sets, e);
    if (ok) fits = mem_new(sets.count, sizeof *fits);
    for (size_t i = 0; ok && i < sets.count; i++) {
        Error why = {0};
        if (i > 0 && !a->of.json) puts("");
        const StoredSet *set = &sets.sets[i];
        FitOptions own = {.bonus_dropped = set->bonus_dropped};
        LOCAL_TEXT tsv = {0};
        LOCAL(points_release) Points points = {0};
        LOCAL(fit_release) Fit fit = {0};
        bool done = stored_points(store, set, &tsv, &own.output, &why);
        if (done && a->tsv) printf("# %s\n%s", SHOWN(set->title), text_get(&tsv));
        else if (done)
            done = points_parse(text_get(&tsv), tsv.length, set->title, &points, &why) &&
                   fit_points(a, set->title, &points, &own, &fit, &why) &&
                   stored_fit_make(&fits[fitted], set, text_get(&tsv), &own, &fit, &why);
        fitted += done;
        if (!done && sets.count > 1 && !a->of.json) printf("%s\nnone: %s\n", SHOWN(set->title), why.text);
        if (!done && first.kind == ERROR_NONE) first = why;
    }
    store_close(store);
    // Points that --label chose are a part of a set, and next to its fit theirs would be one of points that
    // changed.
    bool kept = ok && fitted && !a->tsv && !a->choice.label.count;
    if (kept && access(a->db, W_OK) == 0) ok = stored_fits_keep(a->db, run, fits, fitted, e);
    else if (kept) fprintf(stderr, "the fit is not stored: '%s' can only be read\n", SHOWN(a->db));
    stored_sets_release(&sets);
    if (ok && !fitted) *e = first;
    return ok && fitted > 0;
}

static bool run(void *options, CommandLine *line, Error *e) {
    FitArguments *a = options;
    if (line->words.count + (a->points != NULL) + (a->of.surface != NULL) != 1)
        return error_input(e, "fit: give one of RUN, --points FILE.tsv and --surface FILE.csv");
    a->of.model = a->choice.model.items[0];
    if (a->of.surface) return fit_surface(&a->of, e);
    if (!a->points) return fit_stored(a, line->words.items[0], e);
    LOCAL(points_release) Points points = {0};
    FitOptions o = {0};
    LOCAL(fit_release) Fit fit = {0};
    // Mistakes on the command line come before those in the file.
    return read_options(a, &o, e) && points_open(a->points, &points, e) &&
           fit_points(a, NULL, &points, &o, &fit, e);
}

const Command command_fit = {.name = "fit",
                             .usage = "RUN | --points FILE.tsv | --surface FILE.csv [OPTIONS]",
                             .summary = "fit the law of step compression, or a machine, to measured points",
                             .arguments = {0, WORDS_MAX},
                             COMMAND_OPTIONS(OPTIONS, FitArguments),
                             .run = run};
