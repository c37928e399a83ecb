// The user's own certificate: every method's output against the model's, on the user's model and prompts.
#include "harness/cli/command.h"

#include "datasets/datasets.h"
#include "engine/base/memory.h"
#include "harness/run/answer.h"
#include "harness/cli/records.h"
#include "harness/inputs/models.h"
#include "harness/inputs/prompts.h"
#include "harness/ranks/ranks.h"
#include "simulate/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The chance that a correct method fails the sampling test.
static const double FALSE_ALARM = 1e-6;

typedef struct {
    ModelChoice models;
    RanksOver ranks;
    Words methods, datasets;
    const char *prompts, *template;
    int count, max_tokens, top_k;
    bool sampling;
    double temperature, top_p;
    Verification verification;
    uint64_t seed;
    Records records;
} VerifyOptions;

#define AT(name) offsetof(VerifyOptions, name)
static const Arg OPTIONS[] = {
    {"method", ARG_WORDS, AT(methods), .help = "repeatable; all: every method that the given models allow",
     .value = "all|NAME[:k=v,...]", .fallback = "all", .letter = 'm'},
    {"prompts", ARG_WORD, AT(prompts), .help = "a line each: text, or JSON with \"prompt\"", .value = "FILE",
     .fallback = "a few of our own", .letter = 'f'},
    {"dataset", ARG_WORDS, AT(datasets), .help = "whose prompts are taken, first turns only; repeatable",
     .value = "DATASET"},
    {"template", ARG_WORD, AT(template), .help = "put prompts into a chat template; model: the model's own",
     .value = "TEMPLATE", .fallback = "the model's, if it has one, for a dataset's prompts that ask"},
    {"count", ARG_INT, AT(count), 1, 1 << 20, "8", .help = "prompts, at most; of each dataset", .value = "N",
     .letter = 'n'},
    {"max-tokens", ARG_INT, AT(max_tokens), 1, 1 << 20, "64", .help = "of each output", .value = "N"},
    {"sampling", ARG_FLAG, AT(sampling), .help = "also test the distribution of sampled tokens"},
    {"temperature", ARG_REAL, AT(temperature), 1e-3, 100, "1", .help = "of --sampling", .value = "T",
     .letter = 't'},
    {"top-k", ARG_INT, AT(top_k), 0, 1 << 24, "0", .help = "0 is off", .value = "K"},
    {"top-p", ARG_REAL, AT(top_p), 0, 1, "1", .help = "1 is off", .value = "P"},
    VERIFICATION_OPTION(AT(verification)),
    {"seed", ARG_SEED, AT(seed), .help = "of everything random", .value = "N", .fallback = "0"},
    {"draft", ARG_WORD, AT(models.draft), .help = "a draft model, for methods that need one",
     .value = "MODEL"},
    {"draft-device", ARG_WORD, AT(models.draft_device), .help = "of the draft model", .value = "NAME",
     .fallback = "the target's last"},
    ADAPTER_OPTIONS(AT(models.adapters)),
    RANKS_OPTION(AT(ranks)),
    CACHE_OPTION(AT(models.cache)),
    RECORDS_OPTIONS(AT(records)),
};

typedef struct {
    const VerifyOptions *o;
    Processes processes;
    Models models;
    Line line;
    PromptList prompts;
    const Template *template; // of prompts; NULL: none
    DecodeResult *truth;      // (prompts): autoregressive, greedy, exact
    int checks, failures, skipped;
    int outputs, diverged; // of fast math, which may differ
    double compared;       // tokens of these, up to the first that differs
    json_t *rows;          // a check each; NULL: they are printed
} Verify;

static DecodeOptions decode_options(const Verify *v, const Sampling *sampling, uint64_t seed) {
    const Model *m = &v->models.target.model;
    return (DecodeOptions){.max_tokens = v->o->max_tokens,
                           .eos = m->eos,
                           .eos_count = m->eos_count,
                           .sampling = *sampling,
                           .verification = v->o->verification,
                           .seed = seed,
                           .layout = v->o->models.engine.layout,
                           .merge = !v->o->models.engine.no_merge,
                           .max_rows = v->o->models.engine.max_rows};
}

// A method in each sequence of the batch.
typedef struct Methods {
    Method of[SEQUENCES_MAX];
    int count;
} Methods;

static bool run_prompt(Verify *v, Methods *methods, int sequence, size_t i, const Sampling *sampling,
                       uint64_t seed, Clock clock, DecodeResult *out, Error *e) {
    DecodeOptions o = decode_options(v, sampling, seed);
    Method *method = &methods->of[sequence];
    o.clock = clock;
    snprintf(v->line.at, sizeof v->line.at, "%s, prompt %zu of %zu", method->info->name, i + 1,
             v->prompts.count);
    const IdList *prompt = &v->prompts.prompts[i];
    o.answer = v->truth[i].ids;
    o.answer_count = v->truth[i].tokens;
    return decode(engine_session(&v->models.target, sequence), method, prompt->ids, (int)prompt->count, &o,
                  out, e);
}

// --- greedy ----------------------------------------------------------------------------------------------

static void close_methods(Methods *m) {
    while (m->count) method_close(&m->of[--m->count]);
}

static bool open_methods(Verify *v, const char *text, int count, const Sampling *sampling, Methods *out,
                         Error *e) {
    out->count = 0;
    while (out->count < count) {
        MethodEnv env = models_env_of(&v->models, out->count, sampling, v->o->seed, false);
        if (!method_open(&out->of[out->count], text, &env, e)) {
            close_methods(out);
            return false;
        }
        out->count++;
    }
    return true;
}

// The truth is made alone.
static bool make_truth(Verify *v, Error *e) {
    Methods method;
    Sampling greedy = {.top_p = 1};
    v->truth = mem_new(v->prompts.count, sizeof *v->truth);
    if (!open_methods(v, "autoregressive", 1, &greedy, &method, e)) return false;
    bool ok = true;
    for (size_t i = 0; ok && i < v->prompts.count; i++)
        ok = run_prompt(v, &method, 0, i, &greedy, 0, clock_monotonic(), &v->truth[i], e);
    close_methods(&method);
    return ok;
}

// Outputs from prompt `first` on: one at a time, or all that a batch makes together.
typedef struct Wave {
    Verify *v;
    Methods *methods;
    const Sampling *sampling;
    DecodeResult *got; // (prompts)
    size_t first;
} Wave;

static bool make_one(void *wave, int sequence, int i, Clock clock, Error *e) {
    const Wave *w = wave;
    size_t at = w->first + (size_t)i;
    uint64_t seed = sampling_is_greedy(w->sampling) ? 0 : w->v->o->seed + at;
    return run_prompt(w->v, w->methods, sequence, at, w->sampling, seed, clock, &w->got[at], e);
}

// Judges an output. False with e filled: it could not be.
typedef bool Judge(void *state, size_t prompt, const DecodeResult *got, Error *e);

// Makes and judges all outputs, *done of them, as far as Ctrl-C lets it come.
static bool judge_all(Verify *v, Methods *methods, const Sampling *sampling, Judge *judge, void *state,
                      size_t *done, Error *e) {
    size_t count = v->prompts.count, wave = methods->count > 1 ? count : 1;
    LOCAL_MEMORY DecodeResult *got = mem_new(count, sizeof *got);
    Wave w = {v, methods, sampling, got, 0};
    Outputs outputs = {(int)wave, make_one, &w, clock_monotonic()};
    bool ok = true;
    for (*done = 0; ok && *done < count; w.first = *done) {
        ok = models_run(&v->models, &outputs, e);
        while (*done < w.first + wave && got[*done].ids && judge(state, *done, &got[*done], ok ? e : NULL))
            ++*done;
        ok = ok && *done == w.first + wave;
    }
    for (size_t i = 0; i < count; i++) decode_result_release(&got[i]);
    return ok;
}

static bool is_fast(const Verify *v) { return v->o->models.engine.math == MATH_FAST; }

typedef struct Greedy {
    Verify *v;
    const char *text, *word;
    int bad;
    json_t *first; // difference; NULL: none, or it was printed
    double tokens, steps, rows;
    double compared; // tokens, up to the first that differs
} Greedy;

// Changes of greedy text: a text that left the other's isn't compared any further.
static double per_thousand(int changes, double compared) {
    return compared > 0 ? 1000 * changes / compared : 0;
}

// A token at a difference; for JSON its logit, null if there is none.
static void put_token(char out[48], int token, float logit) {
    if (token < 0) snprintf(out, 48, "the end");
    else snprintf(out, 48, "%d (logit %g)", token, (double)logit);
}

static json_t *logit_json(int token, float logit) { return json_number(token < 0 ? NAN : (double)logit); }

static bool judge_greedy(void *state, size_t i, const DecodeResult *got, Error *e) {
    Greedy *g = state;
    Verify *v = g->v;
    Divergence d = {.position = -1};
    if (!certify_greedy(&v->models.target.session, &v->prompts.prompts[i], &v->truth[i], got, &d, e))
        return false;
    g->tokens += got->tokens;
    g->steps += got->steps;
    g->rows += got->rows;
    g->compared += d.position < 0 ? got->tokens : d.position + 1;
    line_clear(&v->line);
    if (d.position < 0 || g->bad++) return true;
    if (v->rows)
        g->first =
            json_pack("{s:i, s:i, s:i, s:i, s:o, s:o, s:f}", "prompt", (int)i + 1, "position", d.position + 1,
                      "wanted", d.want, "got", d.got, "wanted_logit", logit_json(d.want, d.logits[0]),
                      "got_logit", logit_json(d.got, d.logits[1]), "margin", (double)d.margin);
    else {
        char wanted[48], other[48];
        put_token(wanted, d.want, d.logits[0]);
        put_token(other, d.got, d.logits[1]);
        printf("%s %s: prompt %zu, output token %d: wanted %s, got %s; the two best logits differ by %g\n",
               g->word, SHOWN(g->text), i + 1, d.position + 1, wanted, other, (double)d.margin);
    }
    return true;
}

static json_t *new_row(Verify *v, const char *text, const char *check, const char *result) {
    json_t *row =
        json_pack("{s:o, s:s?, s:s}", "method", json_from_text(text), "check", check, "result", result);
    json_array_append_new(v->rows, row);
    return row;
}

static void put_greedy(Greedy *g, int prompts) {
    json_t *row = new_row(g->v, g->text, "greedy", !g->bad ? "ok" : is_fast(g->v) ? "other" : "failed");
    json_object_update_new(row, json_pack("{s:i, s:i, s:f, s:I, s:o, s:o}", "prompts", prompts, "differ",
                                          g->bad, "per_1000", per_thousand(g->bad, g->compared), "tokens",
                                          (json_int_t)g->tokens, "S",
                                          json_number(g->steps > 0 ? g->tokens / g->steps : NAN), "rows",
                                          json_number(g->steps > 0 ? g->rows / g->steps : NAN)));
    int most = prompts * g->v->o->max_tokens;
    if (g->tokens < most) json_object_set_new(row, "most_tokens", json_integer(most));
    if (g->v->template) json_object_set_new(row, "template", json_string(g->v->template->name));
    if (g->first) json_object_set_new(row, "first", g->first);
}

static bool check_greedy(Verify *v, const char *text, Methods *methods, Error *e) {
    Sampling greedy = {.top_p = 1};
    Greedy g = {.v = v, .text = text, .word = is_fast(v) ? "other" : "FAIL "};
    size_t i;
    bool ok = judge_all(v, methods, &greedy, judge_greedy, &g, &i, e);
    if (i == 0 || !(ok || e->kind == ERROR_INTERRUPTED)) {
        json_decref(g.first);
        return ok;
    }
    v->checks++;
    v->failures += g.bad > 0 && !is_fast(v);
    v->outputs += (int)i;
    v->diverged += g.bad;
    v->compared += g.compared;
    line_clear(&v->line);
    if (v->rows) put_greedy(&g, (int)i);
    else if (g.bad)
        printf("%s %s: greedy, %d of %zu prompts differ (%.0f tokens), %.2g per 1,000; %.1f rows a step\n",
               g.word, SHOWN(text), g.bad, i, g.tokens, per_thousand(g.bad, g.compared), g.rows / g.steps);
    else
        printf("ok    %s: greedy, %zu prompts, %.0f tokens identical, S %.3f\n", SHOWN(text), i, g.tokens,
               g.steps > 0 ? g.tokens / g.steps : 0);
    return ok;
}

// --- sampling --------------------------------------------------------------------------------------------

typedef struct Sampled {
    Verify *v;
    SampledPlaces places;
} Sampled;

static bool judge_sampled(void *state, size_t i, const DecodeResult *got, Error *e) {
    Sampled *s = state;
    return certify_sampled(&s->v->models.target.session, &s->v->prompts.prompts[i], got->ids, got->tokens,
                           &s->places, e);
}

static bool check_sampling(Verify *v, const char *text, Methods *methods, const Sampling *sampling,
                           Error *e) {
    Sampled s = {v, {.sampling = *sampling, .random = {.seed = v->o->seed, .stream = STREAM_BENCH}}};
    SampledPlaces *places = &s.places;
    places->u = mem_new(v->prompts.count * (size_t)v->o->max_tokens, sizeof *places->u);
    size_t i;
    bool ok = judge_all(v, methods, sampling, judge_sampled, &s, &i, e);
    line_clear(&v->line);
    if ((ok || e->kind == ERROR_INTERRUPTED) && i) {
        Uniformity seen = uniformity(places->u, places->count);
        bool good = places->impossible == 0 && seen.p >= FALSE_ALARM;
        bool blocks = v->o->verification == VERIFICATION_BLOCK && method_drafts_chain(&methods->of[0], NULL);
        v->checks++;
        v->failures += !good;
        if (v->rows)
            json_object_update_new(new_row(v, text, "sampling", good ? "ok" : "failed"),
                                   json_pack("{s:i, s:i, s:f, s:i, s:f, s:i}", "prompts", (int)i, "tokens",
                                             (int)places->count, "chi_square", seen.chi_square, "degrees",
                                             seen.degrees, "p", seen.p, "impossible", places->impossible));
        else
            printf("%s  %s: sampling%s, %zu prompts, %zu tokens, chi-square %.1f of %d degrees (p %.3g), "
                   "%d impossible\n",
                   good ? "ok  " : "FAIL", SHOWN(text), blocks ? " by blocks" : "", i, places->count,
                   seen.chi_square, seen.degrees, seen.p, places->impossible);
    }
    mem_free(places->u);
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

// A method that can't be opened with the given models is left out unless it was named.
static bool check_method(Verify *v, const char *text, bool named, Error *e) {
    const VerifyOptions *o = v->o;
    Sampling greedy = {.top_p = 1}, sampling = {o->temperature, o->top_k, o->top_p};
    Methods methods;
    int batch = models_batch(&v->models);
    Error why = {0};
    if (!open_methods(v, text, batch, &greedy, &methods, &why)) {
        if (named || why.kind != ERROR_INPUT) {
            if (e) *e = why;
            return false;
        }
        line_clear(&v->line);
        if (v->rows) json_object_set_new(new_row(v, text, NULL, "left out"), "why", json_from_text(why.text));
        else printf("-     %s: left out, %s\n", SHOWN(text), why.text);
        v->skipped++;
        return true;
    }
    bool ok = check_greedy(v, text, &methods, e), greedy_only = methods.of[0].info->needs & NEEDS_ANSWER;
    close_methods(&methods);
    if (!ok || !o->sampling || greedy_only) return ok;
    if (!open_methods(v, text, batch, &sampling, &methods, e)) return false;
    ok = check_sampling(v, text, &methods, &sampling, e);
    close_methods(&methods);
    return ok;
}

// Whether the list has this method with settings of its own.
static bool is_listed(const Words *list, const char *name) {
    size_t n = strlen(name);
    for (int i = 0; i < list->count; i++)
        if (strncmp(list->items[i], name, n) == 0 && strchr(":", list->items[i][n])) return true;
    return false;
}

static bool check_all(Verify *v, Error *e) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++)
        if (!is_listed(&v->o->methods, table[i]->name) && !check_method(v, table[i]->name, false, e))
            return false;
    return true;
}

static bool check_methods(Verify *v, Error *e) {
    const Words *list = &v->o->methods;
    bool ok = list->count > 0 || check_all(v, e);
    for (int i = 0; ok && i < list->count; i++) {
        const char *text = list->items[i];
        ok = strcmp(text, "all") == 0 ? check_all(v, e) : check_method(v, text, true, e);
    }
    return ok;
}

static bool read_dataset(Verify *v, const char *name, const Template **template, Error *e) {
    const char *folder = getenv("OUTPACE_DATA");
    DatasetRequest request = {
        .name = name, .folder = folder && *folder ? folder : NULL, .limit = (size_t)v->o->count};
    LOCAL(dataset_release) Dataset d = {0};
    return dataset_open(&d, &request, e) &&
           prompts_of_dataset(&d, v->models.target.tokenizer, template, &v->prompts, e);
}

static bool read_prompts(Verify *v, Error *e) {
    const Engine *target = &v->models.target;
    const VerifyOptions *o = v->o;
    const Template *named = o->template ? tokenizer_template(target->tokenizer, o->template, e) : NULL;
    if (o->template && !named) return false;
    v->template = named;
    for (int i = 0; target->tokenizer && i < o->datasets.count; i++) {
        const Template *used = named;
        if (!read_dataset(v, o->datasets.items[i], &used, e)) return false;
        if (used) v->template = used;
    }
    if (target->tokenizer)
        return (o->datasets.count && !o->prompts) ||
               prompts_read(o->prompts, target->tokenizer, named, v->prompts.count + (size_t)o->count,
                            &v->prompts, e);
    if (o->prompts || o->datasets.count || o->template)
        return error_input(e, "the model has no tokenizer: leave prompts out, and random ids are taken");
    prompts_random(target->model.shape.real_vocab, (size_t)v->o->count, v->o->seed, &v->prompts);
    return true;
}

// Few tokens are a weak certificate: an instruction without its template may end at once.
static void print_short(const Verify *v) {
    const Tokenizer *t = v->models.target.tokenizer;
    size_t tokens = 0, count = v->prompts.count, early = 0;
    for (size_t i = 0; i < count; i++) {
        tokens += (size_t)v->truth[i].tokens;
        early += v->truth[i].tokens < v->o->max_tokens;
    }
    if (v->template) printf("prompts are in the template %s\n", v->template->name);
    if (early)
        printf("%zu of %zu outputs ended early: %zu of %zu tokens were certified%s\n", early, count, tokens,
               count * (size_t)v->o->max_tokens,
               !v->template && tokenizer_template(t, TEMPLATE_OF_MODEL, NULL)
                   ? "; --template model asks as the model was taught"
                   : "");
}

// Fast math is compared with exact math on the same device; the exact model is closed before the fast opens.
static bool open_and_know(Verify *v, Error *e) {
    ModelChoice exact = v->o->models;
    exact.engine.math = MATH_EXACT;
    if (!models_open(&v->models, &exact, e) || !read_prompts(v, e) || !make_truth(v, e)) return false;
    if (!is_fast(v)) return true;
    models_close(&v->models);
    return models_open(&v->models, &v->o->models, e);
}

static bool run(void *options, CommandLine *line, Error *e) {
    VerifyOptions *o = options;
    o->models.target = line->words.items[0];
    Verify v = {.o = o, .rows = records_asked(&o->records) ? json_array() : NULL};
    if (!processes_join(&v.processes, o->ranks, e)) return false;
    if (processes_follows(&v.processes)) return processes_follow(&v.processes, e);
    o->models.engine.team = processes_team(&v.processes);
    interrupt_catch();
    line_begin(&v.line, true);
    o->models.engine.progress = line_progress(&v.line);
    bool ok = open_and_know(&v, e) && check_methods(&v, e) && models_are_unchanged(&v.models, e);
    bool interrupted = !ok && v.checks > 0 && e->kind == ERROR_INTERRUPTED;
    line_clear(&v.line);
    if (interrupted) ok = true;
    bool prints = ok && !v.rows;
    if (ok && v.rows) ok = records_print(json_incref(v.rows), NULL, &o->records, e);
    if (prints && is_fast(&v))
        printf("%d of %d outputs of fast math differ from exact ones: %.2g per 1,000 tokens\n", v.diverged,
               v.outputs, per_thousand(v.diverged, v.compared));
    if (prints) print_short(&v);
    if (prints)
        printf("%d checks, %d failed, %d methods left out%s\n", v.checks, v.failures, v.skipped,
               interrupted ? "; interrupted" : "");
    if (v.failures) line->code = EXIT_FAILED;
    else if (interrupted) line->code = EXIT_INTERRUPTED;
    for (size_t i = 0; v.truth && i < v.prompts.count; i++) decode_result_release(&v.truth[i]);
    mem_free(v.truth);
    prompts_release(&v.prompts);
    json_decref(v.rows);
    models_close(&v.models);
    processes_leave(&v.processes);
    return ok;
}

const Command command_verify = {.name = "verify",
                                .usage = "MODEL [OPTIONS]",
                                .summary = "certify that methods leave a model's output unchanged",
                                .arguments = {1, 1},
                                COMMAND_OPTIONS(OPTIONS, VerifyOptions),
                                .shared = MODEL_SET(offsetof(VerifyOptions, models.engine), NULL),
                                .run = run};
