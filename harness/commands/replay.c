// What methods that need only text would accept of given answers: a table of S, without a model.
#include "harness/cli/command.h"

#include "engine/base/json.h"
#include "harness/cli/terminal.h"
#include "harness/replay/replay.h"
#include "simulate/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Words methods;
    const char *model, *path, *format, *split, *template;
    int limit, resamples;
    uint64_t seed;
    bool json;
} ReplayOptions;

#define AT(name) offsetof(ReplayOptions, name)
static const Arg OPTIONS[] = {
    {"model", ARG_WORD, AT(model), .help = "whose tokenizer cuts the texts; no weights are read",
     .value = "DIR", .letter = 'm'},
    {"method", ARG_WORDS, AT(methods), .help = "a method; may be given several times",
     .value = "NAME:K=V,...", .fallback = "prompt-lookup, ngrammys:strategy=context"},
    {"path", ARG_WORD, AT(path), .help = "a file of your own in place of DATASET", .value = "FILE"},
    {"format", ARG_WORD, AT(format), .help = "of that file", .value = "NAME", .fallback = "told by its keys"},
    {"split", ARG_WORD, AT(split), .help = "of a dataset that has several", .value = "NAME",
     .fallback = "its first"},
    {"template", ARG_WORD, AT(template), .help = "put prompts into a chat template", .value = "NAME",
     .fallback = "none"},
    {"limit", ARG_INT, AT(limit), 0, 1 << 24, "0", .help = "prompts; 0: all", .value = "N"},
    {"resamples", ARG_INT, AT(resamples), 100, 100000, "1000", .help = "of prompts, behind the intervals",
     .value = "N"},
    {"seed", ARG_SEED, AT(seed), .help = "of the resamples", .value = "N", .fallback = "0"},
    {"json", ARG_FLAG, AT(json), .help = "print one JSON object"},
};
#undef AT

typedef struct Line {
    const char *method;
    double S, rows, ctar[3], rate;
    Interval interval;
} Line;

static const int CTAR_AT[3] = {1, 2, 4};

static bool measure(const ReplayOptions *o, const ReplayTexts *texts, const char *method, Line *out,
                    Error *e) {
    Replay r;
    Clock clock = clock_processor(); // a busy machine makes replay no slower than it is
    bool ok =
        replay_run(texts, method, clock, &r, e) &&
        bootstrap_ratio(r.tokens, r.steps, texts->count, o->resamples, 0.95, o->seed, &out->interval, e);
    if (ok) {
        out->method = method;
        out->S = r.total_tokens / r.total_steps;
        out->rows = r.rows / r.total_steps;
        out->rate = replay_rate(&r);
        for (int i = 0; i < 3; i++) out->ctar[i] = replay_ctar(&r, CTAR_AT[i]);
    }
    replay_release(&r);
    return ok || error_within(e, "replay");
}

static void print_head(const Dataset *d, const ReplayTexts *t) {
    printf("%s: %zu answers of %zu tokens", SHOWN(d->name), t->count, t->tokens);
    if (t->unanswered) printf("; %zu turns have none", t->unanswered);
    printf("\n%-44s %6s %16s %6s %6s %6s %6s %10s\n", "method", "S", "[95%]", "CTAR1", "CTAR2", "CTAR4",
           "rows", "tokens/s");
}

static void print_line(const Line *l) {
    printf("%-44s %6.3f [%6.3f, %6.3f] %6.3f %6.3f %6.3f %6.1f ", SHOWN(l->method), l->S, l->interval.low,
           l->interval.high, l->ctar[0], l->ctar[1], l->ctar[2], l->rows);
    if (isfinite(l->rate)) printf("%10.0f\n", l->rate);
    else printf("%10s\n", "-");
}

static json_t *line_json(const Line *l) {
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "method", l->method, "S", l->S, "S_low",
                     l->interval.low, "S_high", l->interval.high, "CTAR1", l->ctar[0], "CTAR2", l->ctar[1],
                     "CTAR4", l->ctar[2], "rows_per_step", l->rows, "tokens_per_cpu_s", json_number(l->rate));
}

static bool print_json(const Dataset *d, const ReplayTexts *t, json_t *methods) {
    json_t *root = json_pack("{s:s, s:s, s:I, s:I, s:I, s:O}", "dataset", d->name, "sha256", d->sha256,
                             "answers", (json_int_t)t->count, "tokens", (json_int_t)t->tokens, "unanswered",
                             (json_int_t)t->unanswered, "methods", methods);
    return json_print(root, 0, stdout);
}

static bool replay_each(const ReplayOptions *o, const Dataset *d, const ReplayTexts *texts, Error *e) {
    json_t *methods = json_array();
    bool ok = true;
    if (!o->json) print_head(d, texts);
    for (int i = 0; ok && i < o->methods.count; i++) {
        Line line;
        ok = measure(o, texts, o->methods.items[i], &line, e);
        if (ok && o->json) ok = json_array_append_new(methods, line_json(&line)) == 0;
        else if (ok) print_line(&line);
    }
    if (ok && o->json) ok = print_json(d, texts, methods);
    json_decref(methods);
    return ok;
}

static bool replay(const ReplayOptions *o, const DatasetRequest *request, Error *e) {
    Dataset d = {0};
    ReplayTexts texts = {0};
    const Template *template = o->template ? template_find(o->template, e) : NULL;
    if (o->template && !template) return false;
    Tokenizer *tokenizer = tokenizer_open(o->model, e);
    bool ok = tokenizer && dataset_open(&d, request, e) && replay_texts(&d, tokenizer, template, &texts, e) &&
              replay_each(o, &d, &texts, e);
    replay_texts_release(&texts);
    dataset_release(&d);
    tokenizer_close(tokenizer);
    return ok;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    ReplayOptions o = {.resamples = 1000};
    Words rest;
    bool stop;
    (void)code;
    if (!command_parse(&command_replay, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    if (rest.count + (o.path != NULL) != 1) return error_input(e, "replay: give DATASET or --path FILE");
    if (!o.model) return error_input(e, "replay: give --model DIR, whose tokenizer cuts the texts");
    if (!o.methods.count) o.methods = (Words){{"prompt-lookup", "ngrammys:strategy=context"}, 2};
    const char *folder = getenv("OUTPACE_DATA");
    DatasetRequest request = {.name = rest.count ? rest.items[0] : o.path,
                              .path = o.path,
                              .format = o.format,
                              .split = o.split,
                              .folder = folder && *folder ? folder : NULL,
                              .limit = (size_t)o.limit};
    return replay(&o, &request, e);
}

const Command command_replay = {
    .name = "replay",
    .usage = "DATASET | --path FILE --model DIR [--method NAME:K=V,...]...",
    .summary = "what methods that need only text accept of given answers, without a model",
    .arguments = {0, WORDS_MAX},
    .lesson =
        "Runs the real methods, decode loop and verifier over the dataset's own answers, as if a model\n"
        "had written them: S and CTAR as a greedy run with these outputs would have them, in no time. For\n"
        "prompt-lookup, suffix, ngram-mod, ngrammys with strategy=context, rest (with a datastore), and\n"
        "mixes of them; and for ouroboros-pool (K, beta, W, warm as of ouroboros), the phrases that\n"
        "Ouroboros tries after its draft model's words, here after the text's. The intervals draw prompts\n"
        "again. No speed of a model is in it: tokens/s is the replay's own, by processor time.\n"
        "\n"
        "  outpace replay summarisation --model models/reference --method prompt-lookup:draft=8\n"
        "  outpace replay code --model DIR --method ouroboros-pool --method ouroboros-pool:warm=on\n"
        "  outpace replay gsm8k --model DIR --limit 200 --method ngrammys:strategy=context,k=10,w=10\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
