// The fastest parameters of a method for a model, a machine and a dataset, found in a small part of the time
// that measuring them all would take.
#include "harness/cli/command.h"

#include "harness/cli/records.h"
#include "harness/cli/table.h"
#include "engine/base/memory.h"
#include "engine/base/ranges.h"
#include "engine/decode/pace.h"
#include "harness/analysis/estimates.h"
#include "harness/run/ledger.h"
#include "harness/tune/space.h"
#include "harness/tune/tree.h"
#include "results/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The result for one batch at one context.
typedef struct Tuned {
    int batch, drafted; // drafted: tokens a step; 0: autoregressive decoding is as fast
    int context;        // 0: the prompts' own, where points raced; others are reckoned
    double speedup;     // NAN: nothing was measured
    Interval interval;
    Text method; // the choice
} Tuned;

typedef struct {
    TuneAsk ask;
    const char *budget, *db, *tree, *batches, *contexts, *schedule;
    int nodes;
    bool force;
    TuneOptions race;
    Records records;
} TuneArguments;

#define BATCHES  "1,2,4,8,16" // where none are given
#define AT(name) offsetof(TuneArguments, name)
static const Arg OPTIONS[] = {
    {"method", ARG_WORD, AT(ask.method),
     .help = "any except autoregressive, oracle and mix; values given are fixed", .value = "NAME[:K=V,...]"},
    {"dataset", ARG_WORD, AT(ask.dataset), .help = "whose prompts are decoded", .value = "DATASET"},
    {"path", ARG_WORD, AT(ask.path), .help = "a file of your own in place of a dataset", .value = "FILE"},
    {"format", ARG_WORD, AT(ask.format), .help = "of that file", .value = "NAME",
     .fallback = "told by its keys"},
    {"split", ARG_WORD, AT(ask.split), .help = "of a dataset that has several", .value = "NAME",
     .fallback = "its first"},
    {"template", ARG_WORD, AT(ask.template),
     .help = "put prompts into a chat template; model: the model's own", .value = "TEMPLATE",
     .fallback = "the model's, if it has one, for prompts that ask"},
    {"limit", ARG_INT, AT(ask.limit), 0, 1 << 24, "0", .help = "prompts; 0: all", .value = "N"},
    {"budget", ARG_WORD, AT(budget), .help = "as 90s, 10m, 1h: nothing is begun that would not end in it",
     .value = "TIME", .fallback = "10m", .literal = true},
    {"share", ARG_REAL, AT(race.share), 0, 1e6, "0.085",
     .help = "of the time of a whole sweep: it takes no more, unless the space is small", .value = "X"},
    {"axis", ARG_WORDS, AT(ask.axes),
     .help = "in place of the method's own, as W=1..8 or eta=0.2,0.4; repeatable", .value = "NAME=LIST"},
    {"draft", ARG_WORD, AT(ask.draft), .help = "a smaller model, for methods that need one",
     .value = "MODEL"},
    ADAPTER_OPTIONS(AT(ask.adapters)),
    {"inflate", ARG_WORD, AT(ask.inflate),
     .help = "inflate MODEL first, to the time of a larger one: a stand-in", .value = "SHAPE"},
    {"inflate-draft", ARG_WORD, AT(ask.inflate_draft),
     .help = "with it: the draft to a tenth of that, or 'none'", .value = "SHAPE"},
    {"max-tokens", ARG_INT, AT(ask.max_tokens), 2, 1 << 20, "64", .help = "of an answer", .value = "N",
     .letter = 'n'},
    {"ignore-eos", ARG_FLAG, AT(ask.ignore_eos), .help = "go on after the end-of-sequence token"},
    {"tree", ARG_WORD, AT(tree),
     .help = "find the best fixed tree instead, and write it (medusa, recycling, speculative)",
     .value = "FILE"},
    {"schedule", ARG_WORD, AT(schedule),
     .help = "tune at each of --batches, and write how many tokens to draft, as servers read it",
     .value = "FILE"},
    {"batches", ARG_WORD, AT(batches), .help = "of --schedule; each takes up to the budget", .value = "LIST",
     .fallback = BATCHES},
    {"contexts", ARG_WORD, AT(contexts),
     .help = "of --schedule: also choose for these, by steps timed at each", .value = "LIST"},
    {"nodes", ARG_INT, AT(nodes), 1, RANK_TREE_MOST, "127", .help = "--tree: guesses, at most", .value = "N"},
    ARG_FORCE(AT(force)),
    {"racers", ARG_INT, AT(race.racers), 1, 64, "5", .help = "points that race, at most", .value = "N"},
    {"laps", ARG_INT, AT(race.laps), 1, 1000, "3", .help = "of the race through the prompts, at most",
     .value = "N"},
    {"margin", ARG_REAL, AT(race.margin), 0, 0.5, "0.02",
     .help = "of time: points that are nearer are the same", .value = "X"},
    {"exhaustive", ARG_FLAG, AT(race.exhaustive),
     .help = "measure every point on every prompt instead: slow, and the truth"},
    {"processor-time", ARG_FLAG, AT(ask.processor),
     .help = "CPU time instead of wall time (busy machines; needs --threads 1)"},
    {"set", ARG_WORDS, AT(ask.sets), .help = "change the experiment, as in 'run'; repeatable",
     .value = "a.b=VALUE"},
    {"seed", ARG_SEED, AT(ask.seed), .help = "of the order of the prompts", .value = "N", .fallback = "0"},
    STORE_OPTION(AT(db)),
    RECORDS_OPTIONS(AT(records)),
};

static const OutputKind SCHEDULE = {.holds = "\"draft_len_schedule\""};

static bool read_budget(const char *text, double *out, Error *e) {
    char *end;
    double x = strtod(text, &end), unit = 0;
    if (strcmp(end, "s") == 0 || !*end) unit = 1;
    if (strcmp(end, "m") == 0) unit = 60;
    if (strcmp(end, "h") == 0) unit = 3600;
    *out = x * unit;
    return (end != text && *out > 0 && *out <= 1e7) ||
           error_input(e, "tune: --budget is '%s', must be a time, as 90s, 10m or 1h", text);
}

// With fast math sums may depend on what shares a step: a different text is reported, but isn't a failure.
static int code_of(const TuneResult *r, const Plan *p) {
    bool exact = p->sweep.points[0].settings.engine.math == MATH_EXACT;
    if (r->end == TUNE_INTERRUPTED) return EXIT_INTERRUPTED;
    if (r->diverged && exact) return EXIT_FAILED;
    return r->failed ? EXIT_PARTIAL : EXIT_DONE;
}

static void note(const Plan *p, int choice, double speedup, Tuned *out) {
    out->speedup = speedup;
    out->drafted = speedup > 1 ? p->inputs.work[choice].longest - 1 : 0;
    tune_method_text(&p->experiment, &p->sweep.points[choice], &out->method);
}

static bool tune(Ledger *ledger, const TuneArguments *a, const TuneOptions *o, const Plan *p,
                 const TuneSpace *space, Tuned *tuned, int *exit, Error *e) {
    TuneResult result;
    TuneReport report = {.prepared = p,
                         .options = o,
                         .result = &result,
                         .store = store_path(ledger->store),
                         .run = ledger->run};
    bool ok = tune_run(ledger, space, o, NULL, &result, e);
    int code = ok ? code_of(&result, p) : 0;
    ok = ok && (result.end == TUNE_INTERRUPTED || ledger_choose_baselines(ledger, e)) &&
         estimates_make(ledger->store, ledger->run, ESTIMATES_OF_TASKS, e) &&
         ledger_end(ledger,
                    code == EXIT_INTERRUPTED ? "interrupted"
                    : code == EXIT_FAILED    ? "failed"
                    : code == EXIT_PARTIAL   ? "partial"
                                             : "done",
                    e);
    Rows *r = ok ? rows_ask(ledger->store, "SELECT doubt FROM point_doubt WHERE point_id = ?1",
                            result.choice < 0 ? 0 : ledger->points[result.choice], e)
                 : NULL;
    if (r && rows_next(r)) text_puts(&report.doubt, rows_text(r, 0));
    ok = r && rows_end(r, true, e);
    if (ok && records_asked(&a->records) && !a->schedule)
        ok = records_print(tune_report_json(&report), "points", &a->records, e);
    else if (ok && !records_asked(&a->records)) tune_report(&report);
    if (ok && result.choice >= 0) {
        double speedup = tune_speedup(&result, result.choice, result.race_rounds ? result.sample_rounds : 0);
        note(p, result.choice, speedup, tuned);
        if (result.speedup.high > 0) tuned->interval = result.speedup;
        for (int i = 0; i < o->context_count; i++) {
            int fastest = tune_fastest_at(&result, &result.elsewhere[i], &speedup);
            if (fastest >= 0) note(p, fastest, speedup, &tuned[1 + i]);
        }
    }
    if (ok && code > *exit) *exit = code;
    else ledger_end_early(ledger, e);
    text_release(&report.doubt);
    tune_release(&result);
    return ok;
}

static bool tune_prepared(const TuneArguments *a, const TuneOptions *o, const Plan *p, Tuned *tuned,
                          CommandLine *line, Error *e) {
    LedgerStart start = {.store = a->db,
                         .config_file = p->file,
                         .config = p->config,
                         .overrides = p->overrides,
                         .again = true,
                         .machine = &p->machine,
                         .argc = line->argc,
                         .argv = line->argv};
    LOCAL(tune_space_release) TuneSpace space;
    LOCAL(ledger_close) Ledger ledger = {0};
    tune_space_open(p, &space);
    return ledger_open(&ledger, &p->inputs, &start, e) &&
           tune(&ledger, a, o, p, &space, tuned, &line->code, e);
}

// The best tree of a method, as a file.
static bool tune_tree(const TuneArguments *a, const TuneOptions *o, const Plan *p, Error *e) {
    LOCAL(output_release) Output files = {.force = a->force};
    LOCAL(tree_result_release) TreeResult result = {0};
    TreeAsk ask = {.plan = p,
                   .ask = &a->ask,
                   .path = a->tree,
                   .nodes = a->nodes,
                   .budget_s = o->budget_s,
                   .processor = o->processor,
                   .quiet = o->quiet};
    for (int i = 0; i < p->inputs.content_count; i++) output_reads(&files, p->inputs.contents[i].path);
    bool ok = output_check(&files, a->tree, &TREE_FILE, e) && tree_tune(&ask, &files, &result, e);
    if (ok && records_asked(&a->records))
        ok = records_print(tree_report_json(&ask, &result), NULL, &a->records, e);
    else if (ok) tree_report(&ask, &result);
    return ok;
}

// A context that holds those of --contexts, and the largest step after each.
static bool make_room(const TuneArguments *a, Plan *p, Error *e) {
    const InputModel *m = &p->inputs.models[p->inputs.schedule->setups[0].model];
    int longest = a->race.context_count ? a->race.contexts[a->race.context_count - 1] : 0, rows = 1;
    for (int i = 0; i < p->sweep.count; i++) rows = (int)fmax(rows, ceil(p->inputs.work[i].rows));
    if (longest && longest + rows > m->model.shape.context)
        return error_input(e, "tune: --contexts has %d, the model's context holds %d and a step of %d rows",
                           longest, m->model.shape.context - rows, rows);
    if (longest) p->inputs.positions[0] = (int)fmax(p->inputs.positions[0], longest + rows);
    return true;
}

static bool tune_once(const TuneArguments *a, Tuned *tuned, CommandLine *line, Error *e) {
    LOCAL_MEMORY Plan *p = mem_new(1, sizeof *p);
    bool ok = tune_prepare(&a->ask, p, e);
    if (ok) {
        plan_warn(p);
        ok = make_room(a, p, e) &&
             (a->tree ? tune_tree(a, &a->race, p, e) : tune_prepared(a, &a->race, p, tuned, line, e));
        plan_release(p);
    }
    return ok;
}

// --- how many tokens to draft by batch -------------------------------------------------------------------

static const Column COLUMNS[] = {
    {"batch", "batch", AS_COUNT, .help = "sequences that share a step"},
    {"context", "context", AS_COUNT,
     .help = "0: the prompts' own; others by steps timed there, without a race"},
    {"drafted", "drafted", AS_COUNT, .help = "tokens a step; 0: autoregressive decoding is as fast"},
    {"speedup speedup_low speedup_high", "speedup", AS_MEASURED,
     .help = "of the choice, in the race; at other contexts reckoned"},
    {.head = "[95%]", .kind = AS_REACH},
    {"method", "choice", .help = "with its parameters"},
};
static const TableForm FORM = {"tune --schedule", TABLE_COLUMNS(COLUMNS), .within = "points"};

// vLLM reads ranges of batches, TensorRT-LLM the last batch of each. Between two batches that were measured
// the numbers are those of the larger. `each`: of a batch there are so many.
static void put_batches(const Tuned *tuned, int each, int count, Text *out) {
    text_puts(out, "\"" PACE_RANGES "\": [");
    for (int i = 0; i < count; i += each)
        text_printf(out, "%s[%d, %d, %d]", i ? ", " : "", i ? tuned[i - each].batch + 1 : 1, tuned[i].batch,
                    tuned[i].drafted);
    text_puts(out, "],\n \"draft_len_schedule\": {");
    for (int i = 0; i < count; i += each)
        text_printf(out, "%s\"%d\": %d", i ? ", " : "", tuned[i].batch, tuned[i].drafted);
    text_puts(out, "}");
}

static void put_schedule(const Tuned *tuned, int each, int count, Text *out) {
    text_puts(out, "{");
    put_batches(tuned, each, count, out);
    for (int i = 1; i < each; i++) {
        text_printf(out, "%s{\"context\": %d, ", i > 1 ? ",\n  " : ",\n \"" PACE_CONTEXTS "\": [",
                    tuned[i].context);
        put_batches(tuned + i, each, count - i, out);
        text_puts(out, i + 1 < each ? "}" : "}]");
    }
    text_puts(out, "}\n");
}

static bool finish_schedule(const TuneArguments *a, const Tuned *tuned, int count, Output *out, Error *e) {
    bool records = records_asked(&a->records);
    RecordTable t = {.form = &FORM, .as = &a->records};
    LOCAL_TEXT text = {0};
    put_schedule(tuned, 1 + a->race.context_count, count, &text);
    bool ok =
        output_add(out, a->schedule, &SCHEDULE, text_get(&text), text.length, e) && output_finish(out, e);
    for (int i = 0; i < count; i++)
        TABLE_ROW(&t, CELL(tuned[i].batch), CELL(tuned[i].context), CELL(tuned[i].drafted),
                  cell_measured(tuned[i].speedup, tuned[i].interval.low, tuned[i].interval.high),
                  CELL(text_get(&tuned[i].method)));
    if (ok && records)
        return records_print(json_pack("{s:o}", "points", table_list(&t)), "points", &a->records, e);
    ok = table_end(&t, ok, e);
    if (ok && !output_is_stream(a->schedule)) printf("written to %s\n", SHOWN(a->schedule));
    return ok;
}

// A list of numbers that rise.
static bool read_rising(const char *text, const char *name, int most, IntList *out, Error *e) {
    if (!int_list_parse(text, name, 1, most, out, e)) return false;
    for (int i = 1; i < out->count; i++)
        if (out->items[i] <= out->items[i - 1])
            return error_input(e, "tune: %s is '%s', must rise", name, text);
    return true;
}

static bool read_contexts(TuneArguments *a, Error *e) {
    IntList contexts = {.count = 0};
    if (a->contexts && !read_rising(a->contexts, "--contexts", 1 << 24, &contexts, e)) return false;
    if (contexts.count > TUNE_CONTEXTS)
        return error_input(e, "tune: --contexts has %d, must be %d at most", contexts.count, TUNE_CONTEXTS);
    a->race.context_count = contexts.count;
    memcpy(a->race.contexts, contexts.items, (size_t)contexts.count * sizeof *contexts.items);
    return true;
}

static bool tune_schedule(TuneArguments *a, CommandLine *line, Error *e) {
    IntList batches;
    LOCAL(output_release) Output out = {.force = a->force};
    LOCAL_MEMORY Tuned *tuned = NULL;
    int count = 0;
    if (a->tree) return error_input(e, "tune: --tree finds a tree, --schedule a number: give one of them");
    if (!read_rising(a->batches ? a->batches : BATCHES, "--batches", SEQUENCES_MAX, &batches, e) ||
        !read_contexts(a, e))
        return false;
    int each = 1 + a->race.context_count;
    tuned = mem_new((size_t)(batches.count * each), sizeof *tuned);
    output_reads(&out, a->ask.path);
    bool ok = output_check(&out, a->schedule, &SCHEDULE, e);
    for (int b = 0; ok && b < batches.count && line->code != EXIT_INTERRUPTED; b++) {
        for (int i = 0; i < each; i++)
            tuned[count++] = (Tuned){.batch = batches.items[b],
                                     .context = i ? a->race.contexts[i - 1] : 0,
                                     .speedup = NAN,
                                     .interval = {NAN, NAN, NAN}};
        a->ask.engine.batch = batches.items[b];
        ok = tune_once(a, tuned + count - each, line, e);
    }
    if (ok && line->code != EXIT_INTERRUPTED) ok = finish_schedule(a, tuned, count, &out, e);
    for (int i = 0; i < count; i++) text_release(&tuned[i].method);
    return ok;
}

static bool run(void *options, CommandLine *line, Error *e) {
    TuneArguments *a = options;
    Tuned tuned = {0};
    if (!a->ask.method) return error_input(e, "tune: give a --method, as --method lookahead");
    if (!a->ask.dataset == !a->ask.path) return error_input(e, "tune: give --dataset NAME or --path FILE");
    if ((a->batches || a->contexts) && !a->schedule)
        return error_input(e, "tune: --%s goes with --schedule", a->batches ? "batches" : "contexts");
    a->ask.target = line->words.items[0];
    a->ask.tree = a->tree != NULL;
    a->race.processor = a->ask.processor;
    a->race.quiet = records_asked(&a->records);
    if (!read_budget(a->budget, &a->race.budget_s, e)) return false;
    interrupt_catch();
    bool ok = a->schedule ? tune_schedule(a, line, e) : tune_once(a, &tuned, line, e);
    text_release(&tuned.method);
    return ok;
}

const Command command_tune = {.name = "tune",
                              .usage = "MODEL --method METHOD --dataset DATASET [OPTIONS]",
                              .summary = "find a method's fastest parameters, without measuring them all",
                              .arguments = {1, 1},
                              .kept = "measured points are in the store",
                              COMMAND_OPTIONS(OPTIONS, TuneArguments),
                              .shared = MODEL_SET(offsetof(TuneArguments, ask.engine), "isa context"),
                              .run = run,
                              .tables = TABLES(&FORM)};
