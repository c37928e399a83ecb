// The user's own certificate: every method's output against the model's, on the user's model and prompts.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/cli/terminal.h"
#include "harness/run/answer.h"
#include "harness/cli/signals.h"
#include "harness/cli/line.h"
#include "harness/models/models.h"
#include "harness/prompts/prompts.h"
#include "harness/ranks/ranks.h"
#include "simulate/statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The chance that a correct method fails the sampling test.
static const double FALSE_ALARM = 1e-6;

typedef struct {
    ModelChoice models;
    RanksOver ranks;
    Words methods;
    const char *prompts;
    int count, max_tokens, top_k;
    bool sampling;
    double temperature, top_p;
    Verification verification;
    uint64_t seed;
} VerifyOptions;

#define AT(name) offsetof(VerifyOptions, name)
static const Arg OPTIONS[] = {
    {"method", ARG_WORDS, AT(methods), .help = "repeatable; all: every method that the given models allow",
     .value = "all|NAME[:k=v,...]", .fallback = "all", .letter = 'm'},
    {"prompts", ARG_WORD, AT(prompts), .help = "a line each: text, or JSON with \"prompt\"", .value = "FILE",
     .fallback = "a few of our own", .letter = 'f'},
    {"count", ARG_INT, AT(count), 1, 1 << 20, "8", .help = "prompts, at most", .value = "N", .letter = 'n'},
    {"max-tokens", ARG_INT, AT(max_tokens), 1, 1 << 20, "64", .help = "of each output", .value = "N"},
    {"sampling", ARG_FLAG, AT(sampling), .help = "also test the distribution of sampled tokens"},
    {"temperature", ARG_REAL, AT(temperature), 1e-3, 100, "1", .help = "of --sampling", .value = "T",
     .letter = 't'},
    {"top-k", ARG_INT, AT(top_k), 0, 1 << 24, "0", .help = "0 is off", .value = "K"},
    {"top-p", ARG_REAL, AT(top_p), 0, 1, "1", .help = "1 is off", .value = "P"},
    VERIFICATION_OPTION(AT(verification)),
    {"seed", ARG_SEED, AT(seed), .help = "of everything random", .value = "N", .fallback = "0"},
    {"draft", ARG_WORD, AT(models.draft), .help = "a draft model, for methods that need one", .value = "DIR"},
    {"draft-device", ARG_WORD, AT(models.draft_device), .help = "of the draft model", .value = "NAME",
     .fallback = "the target's last"},
    ADAPTER_OPTIONS(AT(models.adapters)),
    RANKS_OPTION(AT(ranks)),
    CACHE_OPTION(AT(models.cache)),
};
#undef AT

typedef struct {
    const VerifyOptions *o;
    Processes processes;
    Models models;
    Line line;
    PromptList prompts;
    DecodeResult *truth; // (prompts): autoregressive, greedy, exact
    int checks, failures, skipped;
    int outputs, diverged; // of fast math, which may differ
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
                           .max_rows = v->o->models.engine.max_rows,
                           .clock = clock_monotonic()};
}

static bool run_prompt(Verify *v, Method *method, size_t i, const Sampling *sampling, uint64_t seed,
                       DecodeResult *out, Error *e) {
    DecodeOptions o = decode_options(v, sampling, seed);
    snprintf(v->line.at, sizeof v->line.at, "%s, prompt %zu of %zu", method->info->name, i + 1,
             v->prompts.count);
    const IdList *prompt = &v->prompts.prompts[i];
    o.answer = v->truth[i].ids;
    o.answer_count = v->truth[i].tokens;
    return decode(&v->models.target.session, method, prompt->ids, (int)prompt->count, &o, out, e);
}

// --- greedy ----------------------------------------------------------------------------------------------

static bool open_method(Verify *v, const char *text, const Sampling *sampling, Method *out, Error *e) {
    MethodEnv env = models_env(&v->models, sampling, v->o->seed, false);
    return method_open(out, text, &env, e);
}

static bool make_truth(Verify *v, Error *e) {
    Method method;
    Sampling greedy = {.top_p = 1};
    v->truth = mem_new(v->prompts.count, sizeof *v->truth);
    if (!open_method(v, "autoregressive", &greedy, &method, e)) return false;
    bool ok = true;
    for (size_t i = 0; ok && i < v->prompts.count; i++)
        ok = run_prompt(v, &method, i, &greedy, 0, &v->truth[i], e);
    method_close(&method);
    return ok;
}

static bool is_fast(const Verify *v) { return v->o->models.engine.math == MATH_FAST; }

static bool check_greedy(Verify *v, const char *text, Method *method, Error *e) {
    Sampling greedy = {.top_p = 1};
    const char *word = is_fast(v) ? "other" : "FAIL ";
    int bad = 0;
    size_t i = 0; // prompts, as far as Ctrl-C let it come
    double tokens = 0, steps = 0;
    bool ok = true;
    for (; ok && i < v->prompts.count; i += ok) {
        DecodeResult got = {0};
        Divergence d = {.position = -1};
        ok = run_prompt(v, method, i, &greedy, 0, &got, e) &&
             certify_greedy(&v->models.target.session, &v->prompts.prompts[i], &v->truth[i], &got, &d, e);
        tokens += got.tokens;
        steps += got.steps;
        decode_result_release(&got);
        line_clear(&v->line);
        if (d.position >= 0 && bad++ == 0)
            printf("%s %s: prompt %zu, output token %d: wanted %d, got %d; the two best logits differ by "
                   "%g\n",
                   word, SHOWN(text), i + 1, d.position + 1, d.want, d.got, (double)d.margin);
    }
    if (i == 0 || !(ok || e->kind == ERROR_INTERRUPTED)) return ok;
    v->checks++;
    v->failures += bad > 0 && !is_fast(v);
    v->outputs += (int)i;
    v->diverged += bad;
    line_clear(&v->line);
    if (bad)
        printf("%s %s: greedy, %d of %zu prompts differ (%.0f tokens)\n", word, SHOWN(text), bad, i, tokens);
    else
        printf("ok    %s: greedy, %zu prompts, %.0f tokens identical, S %.3f\n", SHOWN(text), i, tokens,
               steps > 0 ? tokens / steps : 0);
    return ok;
}

// --- sampling --------------------------------------------------------------------------------------------

static bool check_sampling(Verify *v, const char *text, Method *method, const Sampling *sampling, Error *e) {
    SampledPlaces places = {.sampling = *sampling, .random = {.seed = v->o->seed, .stream = STREAM_BENCH}};
    places.u = mem_new(v->prompts.count * (size_t)v->o->max_tokens, sizeof *places.u);
    bool ok = true;
    size_t i = 0; // prompts, as far as Ctrl-C let it come
    for (; ok && i < v->prompts.count; i += ok) {
        DecodeResult got = {0};
        ok = run_prompt(v, method, i, sampling, v->o->seed + i, &got, e) &&
             certify_sampled(&v->models.target.session, &v->prompts.prompts[i], got.ids, got.tokens, &places,
                             e);
        decode_result_release(&got);
    }
    line_clear(&v->line);
    if ((ok || e->kind == ERROR_INTERRUPTED) && i) {
        Uniformity seen = uniformity(places.u, places.count);
        bool good = places.impossible == 0 && seen.p >= FALSE_ALARM;
        bool blocks = v->o->verification == VERIFICATION_BLOCK && method_drafts_chain(method, NULL);
        v->checks++;
        v->failures += !good;
        printf("%s  %s: sampling%s, %zu prompts, %zu tokens, chi-square %.1f of %d degrees (p %.3g), %d "
               "impossible\n",
               good ? "ok  " : "FAIL", SHOWN(text), blocks ? " by blocks" : "", i, places.count,
               seen.chi_square, seen.degrees, seen.p, places.impossible);
    }
    mem_free(places.u);
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

// A method that can't be opened with the given models is left out unless it was named.
static bool check_method(Verify *v, const char *text, bool named, Error *e) {
    const VerifyOptions *o = v->o;
    Sampling greedy = {.top_p = 1}, sampling = {o->temperature, o->top_k, o->top_p};
    Method method;
    Error why = {0};
    if (!open_method(v, text, &greedy, &method, &why)) {
        if (named || why.kind != ERROR_INPUT) {
            if (e) *e = why;
            return false;
        }
        line_clear(&v->line);
        printf("-     %s: left out, %s\n", SHOWN(text), why.text);
        v->skipped++;
        return true;
    }
    bool ok = check_greedy(v, text, &method, e), greedy_only = method.info->needs & NEEDS_ANSWER;
    method_close(&method);
    if (!ok || !o->sampling || greedy_only) return ok;
    if (!open_method(v, text, &sampling, &method, e)) return false;
    ok = check_sampling(v, text, &method, &sampling, e);
    method_close(&method);
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

static bool read_prompts(Verify *v, Error *e) {
    const Engine *target = &v->models.target;
    if (target->tokenizer)
        return prompts_read(v->o->prompts, target->tokenizer, (size_t)v->o->count, &v->prompts, e);
    if (v->o->prompts)
        return error_input(e, "the model has no tokenizer: leave --prompts out, and random ids are taken");
    prompts_random(target->model.shape.real_vocab, (size_t)v->o->count, v->o->seed, &v->prompts);
    return true;
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

static void release(Verify *v) {
    for (size_t i = 0; v->truth && i < v->prompts.count; i++) decode_result_release(&v->truth[i]);
    mem_free(v->truth);
    prompts_release(&v->prompts);
    models_close(&v->models);
}

static bool run(int argc, char **argv, int *code, Error *e) {
    VerifyOptions o = {.count = 8, .max_tokens = 64, .temperature = 1, .top_p = 1};
    Words rest;
    bool stop;
    o.models.engine.isa = getenv("OUTPACE_ISA");
    if (!command_parse(&command_verify, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    o.models.target = rest.items[0];
    Verify v = {.o = &o};
    if (!processes_join(&v.processes, o.ranks, e)) return false;
    if (processes_follows(&v.processes)) return processes_follow(&v.processes, e);
    o.models.engine.team = processes_team(&v.processes);
    interrupt_catch();
    line_begin(&v.line, true);
    o.models.engine.progress = line_progress(&v.line);
    bool ok = open_and_know(&v, e) && check_methods(&v, e);
    bool interrupted = !ok && v.checks > 0 && e->kind == ERROR_INTERRUPTED;
    line_clear(&v.line);
    if (interrupted) ok = true;
    if (ok && is_fast(&v))
        printf("%d of %d outputs of fast math differ from exact ones\n", v.diverged, v.outputs);
    if (ok)
        printf("%d checks, %d failed, %d methods left out%s\n", v.checks, v.failures, v.skipped,
               interrupted ? "; interrupted" : "");
    if (v.failures) *code = EXIT_FAILED;
    else if (interrupted) *code = EXIT_INTERRUPTED;
    release(&v);
    processes_leave(&v.processes);
    return ok;
}

const Command command_verify = {
    .name = "verify",
    .usage = "MODEL [OPTIONS]",
    .summary = "certify that methods leave a model's output unchanged",
    .arguments = {1, 1},
    .lesson =
        "Runs methods over prompts and compares each output, token for token, with autoregressive decoding.\n"
        "The first difference is printed: prompt, position, both tokens, and how close the two best logits\n"
        "were. With --sampling each sampled token is also placed in the model's own distribution at that\n"
        "position; over many tokens these places are uniform if and only if tokens are drawn from the\n"
        "model's distribution (a chi-square test, which a correct method fails once in a million times).\n"
        "The exit code is 1 if any method fails. With --math fast, whose sums may depend on what shares a\n"
        "step, outputs are compared with those of exact math; differences are counted, but don't fail.\n"
        "\n"
        "  outpace verify MODEL\n"
        "  outpace verify MODEL -m prompt-lookup:draft=8 -m lookahead --prompts mine.txt -n 50\n"
        "  outpace verify MODEL --method 'mix:lookahead(W=5,G=5)+prompt-lookup' --max-rows 32\n"
        "  outpace verify MODEL --method all --method rest:datastore=FILE\n"
        "  outpace verify MODEL --draft SMALLER --sampling --temperature 0.8\n"
        "  mpirun -n 2 outpace verify MODEL --ranks mpi -m lookahead:ranks=2\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .shared = MODEL_SET(offsetof(VerifyOptions, models.engine), NULL),
    .run = run};
