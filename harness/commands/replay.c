// What methods that need only text would accept of given answers: a table of S, without a model.
#include "harness/cli/command.h"

#include "harness/cli/table.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/replay/replay.h"
#include "simulate/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Words methods, tokens, lists;
    DatasetRequest of;
    ReplayTokens from;
    ReplayRecord record;
    const char *template;
    int limit, resamples;
    uint64_t seed;
    Records records;
    RecordTable *rows; // for programs: of a set, in CSV of all
} ReplayOptions;

#define AT(name) offsetof(ReplayOptions, name)
static const Arg OPTIONS[] = {
    {"model", ARG_WORD, AT(record.model), .help = "whose tokenizer cuts the texts; with --tokens, its name",
     .value = "DIR", .letter = 'm'},
    {"tokens", ARG_WORDS, AT(tokens), .help = "rows of token ids, JSON lines or gzip of them; several times",
     .value = "FILE"},
    {"prompt-ids", ARG_WORD, AT(from.prompt), .help = "with --tokens: key of the prompt's ids",
     .value = "KEY", .fallback = "prompt_token_ids", .literal = true},
    {"output-ids", ARG_WORD, AT(from.answer), .help = "with --tokens: key of the output's ids",
     .value = "KEY", .fallback = "generated_token_ids", .literal = true},
    {"list", ARG_WORDS, AT(lists), .help = "with --tokens: key of recorded acceptance, for recorded",
     .value = "KEY"},
    {"vocab", ARG_INT, AT(from.vocab), 0, 1 << 20, "0", .help = "with --tokens: ids of the model; 0: as seen",
     .value = "N"},
    {"method", ARG_WORDS, AT(methods), .help = "a method; may be given several times",
     .value = "NAME:K=V,...", .fallback = "prompt-lookup, ngrammys; with --tokens also others"},
    {"path", ARG_WORD, AT(of.path), .help = "a file of your own in place of DATASET", .value = "FILE"},
    {"format", ARG_WORD, AT(of.format), .help = "of that file", .value = "NAME",
     .fallback = "told by its keys"},
    {"split", ARG_WORD, AT(of.split), .help = "of a dataset that has several", .value = "NAME",
     .fallback = "its first"},
    {"template", ARG_WORD, AT(template), .help = "put prompts into a chat template", .value = "TEMPLATE",
     .fallback = "none"},
    {"limit", ARG_INT, AT(limit), 0, 1 << 24, "0", .help = "prompts; 0: all", .value = "N"},
    {"resamples", ARG_INT, AT(resamples), 100, 100000, "1000", .help = "of prompts, behind the intervals",
     .value = "N"},
    {"seed", ARG_SEED, AT(seed), .help = "of the resamples", .value = "N", .fallback = "0"},
    {"db", ARG_WORD, AT(record.db), .help = "keep every step in this store, as a run", .value = "FILE",
     .fallback = "none"},
    {"name", ARG_WORD, AT(record.name), .help = "with --db: of the run", .value = "TEXT",
     .fallback = "replay", .literal = true},
    RECORDS_OPTIONS(AT(records)),
};

static const Column COLUMNS[] = {
    {"method S S_low S_high", .help = "tokens a step"},
    {"CTAR1 CTAR2 CTAR4", .help = "as in show"},
    {"rows_per_step", .help = "rows of a step"},
    {"tokens_per_cpu_s", .help = "the replay's own speed"},
    {"dataset", .optional = true, .help = "the texts, in CSV"},
};
static const TableForm FORM = {"replay", TABLE_COLUMNS(COLUMNS), .within = "methods"};

// A set's table; each method is replayed now unless `done` has its replay.
static bool print_set(const ReplayOptions *o, const ReplayTexts *t, const Replay *done, Error *e) {
    bool ok = true, records = records_asked(&o->records);
    if (!records) {
        printf("%s: %zu answers of %zu tokens", SHOWN(t->name), t->count, t->tokens);
        if (t->unanswered) printf("; %zu turns have none", t->unanswered);
        if (t->unequal) printf("; %zu rows left out: a list is of another text", t->unequal);
        printf("\n%-44s %6s %16s %6s %6s %6s %6s %10s\n", "method", "S", "[95%]", "CTAR1", "CTAR2", "CTAR4",
               "rows", "tokens/s");
    }
    for (int i = 0; ok && i < o->methods.count; i++) {
        const char *method = o->methods.items[i];
        LOCAL(replay_release) Replay own = {0};
        Interval in;
        // Processor time: a busy machine makes a replay no slower than it is.
        ok = done || replay_run(t, method, clock_processor(), NULL, &own, e);
        const Replay *r = done ? &done[i] : &own;
        ok = ok && bootstrap_ratio(r->tokens, r->steps, t->count, o->resamples, 0.95, o->seed, &in, e);
        double S = r->total_tokens / r->total_steps, rows = r->rows / r->total_steps, rate = replay_rate(r),
               ctar1 = replay_ctar(r, 1), ctar2 = replay_ctar(r, 2), ctar4 = replay_ctar(r, 4);
        if (ok && records)
            TABLE_ROW(o->rows, CELL(method), CELL(S), CELL(in.low), CELL(in.high), CELL(ctar1), CELL(ctar2),
                      CELL(ctar4), CELL(rows), CELL(rate), o->records.csv ? CELL(t->name) : NO_CELL);
        else if (ok) {
            printf("%-44s %6.3f [%6.3f, %6.3f] %6.3f %6.3f %6.3f %6.1f ", SHOWN(method), S, in.low, in.high,
                   ctar1, ctar2, ctar4, rows);
            if (isfinite(rate)) printf("%10.0f\n", rate);
            else printf("%10s\n", "-");
        }
    }
    if (ok && o->records.json)
        ok = json_print(json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "dataset", t->name, "sha256",
                                  t->sha256, "answers", (json_int_t)t->count, "tokens", (json_int_t)t->tokens,
                                  "unanswered", (json_int_t)t->unanswered, "unequal", (json_int_t)t->unequal,
                                  "methods", table_list(o->rows)),
                        0, stdout);
    return ok || error_within(e, "replay");
}

// --- into the store --------------------------------------------------------------------------------------

static bool record(const ReplayOptions *o, const ReplayTexts *sets, int count, Error *e) {
    size_t replays = (size_t)count * (size_t)o->methods.count;
    ReplayRecord r = o->record;
    if (!o->tokens.count) r.model = NULL;
    r.sets = sets, r.set_count = count;
    r.methods = o->methods.items, r.method_count = o->methods.count;
    LOCAL_MEMORY Replay *done = mem_new(replays, sizeof *done);
    int64_t run;
    bool ok = replay_record(&r, clock_processor(), done, &run, e);
    for (int i = 0; ok && i < count; i++) ok = print_set(o, &sets[i], &done[i * o->methods.count], e);
    if (ok && !records_asked(&o->records)) printf("run %lld of '%s'\n", (long long)run, SHOWN(r.db));
    for (size_t i = 0; i < replays; i++) replay_release(&done[i]);
    return ok;
}

static bool replay_sets(const ReplayOptions *o, const ReplayTexts *sets, int count, Error *e) {
    bool ok = true;
    if (o->record.db) return record(o, sets, count, e);
    for (int i = 0; ok && i < count * o->methods.count; i++)
        ok = replay_check(&sets[i / o->methods.count], o->methods.items[i % o->methods.count], e);
    for (int i = 0; ok && i < count; i++) ok = print_set(o, &sets[i], NULL, e);
    return ok;
}

// --- texts -----------------------------------------------------------------------------------------------

static bool replay_dataset(const ReplayOptions *o, const char *name, Error *e) {
    const char *folder = getenv("OUTPACE_DATA");
    DatasetRequest request = o->of;
    request.name = name;
    request.folder = folder && *folder ? folder : NULL;
    request.limit = (size_t)o->limit;
    LOCAL(dataset_release) Dataset d = {0};
    LOCAL(replay_texts_release) ReplayTexts texts = {0};
    LOCAL_MEMORY char *model = shipped_model(o->record.model, e);
    Tokenizer *tokenizer = model ? tokenizer_open(model, e) : NULL;
    const Template *t = tokenizer && o->template ? tokenizer_template(tokenizer, o->template, e) : NULL;
    bool ok = tokenizer && (t || !o->template) && dataset_open(&d, &request, e) &&
              replay_texts(&d, tokenizer, t, &texts, e) && replay_sets(o, &texts, 1, e);
    tokenizer_close(tokenizer);
    return ok;
}

static bool replay_files(const ReplayOptions *o, Error *e) {
    LOCAL_MEMORY ReplayTexts *sets = mem_new((size_t)o->tokens.count, sizeof *sets);
    ReplayTokens from = o->from;
    from.limit = (size_t)o->limit;
    from.list_count = o->lists.count;
    bool ok =
        o->lists.count <= REPLAY_LISTS || error_input(e, "replay: %d lists are too many", o->lists.count);
    for (int i = 0; ok && i < o->lists.count; i++) from.lists[i] = o->lists.items[i];
    for (int i = 0; ok && i < o->tokens.count; i++) {
        from.path = o->tokens.items[i];
        ok = replay_tokens(&from, &sets[i], e);
    }
    ok = ok && replay_sets(o, sets, o->tokens.count, e);
    for (int i = 0; i < o->tokens.count; i++) replay_texts_release(&sets[i]);
    return ok;
}

static bool replay(ReplayOptions *o, CommandLine *line, const char *dataset, Error *e) {
    static const Words OF_TEXTS = {{"prompt-lookup", "ngrammys:strategy=context"}, 2};
    static const Words OF_TOKENS = {{"prompt-lookup", "ngrammys:strategy=context", "suffix", "suffix:warm=on",
                                     "ngram-mod:warm=off", "ngram-mod", "ouroboros-pool",
                                     "mix:suffix(warm=on)+ngrammys(strategy=context)"},
                                    8};
    static const char BASELINE[] = "autoregressive";
    Words *m = &o->methods;
    if ((dataset != NULL) + (o->of.path != NULL) + (o->tokens.count > 0) != 1 || line->words.count > 1)
        return error_input(e, "replay: give DATASET, --path FILE or --tokens FILE");
    if (!o->tokens.count && !o->record.model)
        return error_input(e, "replay: give --model DIR, whose tokenizer cuts the texts");
    if (!m->count) *m = o->tokens.count ? OF_TOKENS : OF_TEXTS;
    if (o->record.db && strcmp(m->items[0], BASELINE) != 0 &&
        m->count < WORDS_MAX) { // goes first: the others' baseline
        memmove(m->items + 1, m->items, (size_t)m->count++ * sizeof *m->items);
        m->items[0] = BASELINE;
    }
    RecordTable rows = {.form = &FORM, .as = &o->records};
    o->rows = &rows; // cppcheck-suppress autoVariables
    o->record.argc = line->argc, o->record.argv = line->argv;
    bool ok = o->tokens.count ? replay_files(o, e) : replay_dataset(o, dataset ? dataset : o->of.path, e);
    if (ok && o->records.csv) return table_end(&rows, true, e);
    json_decref(table_list(&rows));
    return ok;
}

static bool run(void *options, CommandLine *line, Error *e) {
    return replay(options, line, line->words.items[0], e);
}

bool replay_acceptance(const char *file, const AcceptanceOptions *a, CommandLine *line, Error *e) {
    static const Words LISTS = {{"acc_ngram", "acc_eagle"}, 2};
    ReplayOptions o = {.tokens = {{file}, 1}};
    CommandLine own = {.argc = line->argc, .argv = line->argv};
    char *methods[WORDS_MAX];
    int count = 0;
    bool ok = true;
    args_start(&(ArgSet){OPTIONS, sizeof OPTIONS / sizeof *OPTIONS, 0, NULL}, 1, &o);
    o.record.db = a->db, o.record.model = a->model, o.record.name = a->name ? a->name : "acceptance";
    o.lists = a->lists.count ? a->lists : LISTS;
    for (int i = 0; i < o.lists.count; i++)
        for (const char *at = a->drafts; ok && *at; at += strspn(at, ",")) {
            const char *list = o.lists.items[i];
            bool drafts = !strstr(list, "ngram") && !strstr(list, "suffix") && !strstr(list, "lookup");
            int n = (int)strcspn(at, ",");
            if (count == WORDS_MAX - 1)
                ok = error_input(e, "store import: %d lists and numbers of tokens are too many", WORDS_MAX);
            else
                methods[count++] =
                    mem_printf("recorded:list=%s,draft=%.*s%s", list, n, at, drafts ? "" : ",model=off");
            at += n;
        }
    memcpy(o.methods.items, methods, (size_t)count * sizeof *methods);
    o.methods.count = count;
    ok = ok && replay(&o, &own, NULL, e);
    for (int i = 0; i < count; i++) mem_free(methods[i]);
    return ok;
}

const Command command_replay = {
    .name = "replay",
    .usage = "DATASET | --path FILE | --tokens FILE [--model DIR] [--method NAME:K=V,...]...",
    .summary = "what methods that need only text accept of given answers, without a model",
    .arguments = {0, WORDS_MAX},
    COMMAND_OPTIONS(OPTIONS, ReplayOptions),
    .run = run,
    .tables = TABLES(&FORM)};
