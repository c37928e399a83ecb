// Generates one text: opens the model, decodes with one method, streams, and reports the cost.
#include "harness/cli/command.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "harness/inputs/models.h"
#include "harness/inputs/prompts.h"
#include "harness/ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    ModelChoice models;
    RanksOver ranks;
    const char *file, *ids, *template, *system, *method;
    int max_tokens, top_k, prefill_chunk;
    double temperature, top_p;
    uint64_t seed;
    Verification verification;
    bool ignore_eos, steps, stats, json;
    Words stops;
} GenerateOptions;

#define AT(name) offsetof(GenerateOptions, name)
static const Arg OPTIONS[] = {
    {"file", ARG_WORD, AT(file), .help = "read the prompt from a file", .value = "FILE", .letter = 'f'},
    {"ids", ARG_WORD, AT(ids), .help = "the prompt as token ids", .value = "1,2,3"},
    {"template", ARG_WORD, AT(template),
     .help = "a chat template, of 'outpace tokenizer encode --help'; model: the model's own",
     .value = "TEMPLATE", .fallback = "none"},
    {"system", ARG_WORD, AT(system), .help = "the template's system text", .value = "TEXT",
     .fallback = "the template's own"},
    {"method", ARG_WORD, AT(method), .help = "'outpace methods' lists them", .value = "NAME[:k=v,...]",
     .fallback = "autoregressive", .literal = true, .letter = 'm'},
    {"draft", ARG_WORD, AT(models.draft), .help = "the model that drafts, where one is needed",
     .value = "MODEL"},
    {"draft-device", ARG_WORD, AT(models.draft_device), .help = "of the draft model", .value = "NAME",
     .fallback = "the target's last"},
    ADAPTER_OPTIONS(AT(models.adapters)),
    {"max-tokens", ARG_INT, AT(max_tokens), 0, 1 << 24, "128", .help = "generate at most so many",
     .value = "N", .letter = 'n'},
    {"temperature", ARG_REAL, AT(temperature), 0, 100, "0", .help = "0 is greedy", .value = "T",
     .letter = 't'},
    {"top-k", ARG_INT, AT(top_k), 0, 1 << 24, "0", .help = "sample from the K likeliest; 0 is off",
     .value = "K"},
    {"top-p", ARG_REAL, AT(top_p), 0, 1, "1", .help = "sample from the likeliest that hold P", .value = "P"},
    {"seed", ARG_SEED, AT(seed), .help = "of everything random", .value = "N", .fallback = "0"},
    {"stop", ARG_WORDS, AT(stops), .help = "end before this text; repeatable", .value = "TEXT"},
    VERIFICATION_OPTION(AT(verification)),
    RANKS_OPTION(AT(ranks)),
    {"ignore-eos", ARG_FLAG, AT(ignore_eos), .help = "go on after the end-of-sequence token"},
    {"no-merge", ARG_FLAG, AT(models.engine.no_merge), .help = "run equal prefixes separately"},
    {"prefill-chunk", ARG_INT, AT(prefill_chunk), 0, TREE_MAX_NODES, "0",
     .help = "prompt tokens a pass; 0: 1024", .value = "N"},
    CACHE_OPTION(AT(models.cache)),
    {"steps", ARG_FLAG, AT(steps), .help = "show which tokens a step wrote: by colour, or | between steps"},
    {"stats", ARG_FLAG, AT(stats), .help = "report the cost on stderr afterwards", .letter = 's'},
    {"json", ARG_FLAG, AT(json), .help = "print one JSON object in place of the text"},
};

// --- the stream ------------------------------------------------------------------------------------------

typedef struct {
    bool quiet;         // collect only
    bool steps, colour; // mark them, by colour
    int step;           // that the next token is of
    int shown;          // that the last shown text is of
    TextStream stream;
    StopFilter filter;
    Text text; // all of it, as shown
    bool stopped, interrupted, closed;
    Error error;
} Output;

#define PLAIN "\033[0m"

// Between the texts of two steps. Every other step has the colour.
static void mark_step(Output *out) {
    if (!out->steps || out->step == out->shown) return;
    fputs(!out->colour ? "|" : out->step % 2 ? "\033[4;36m" : PLAIN, stdout);
    out->shown = out->step;
}

static void count_step(void *state, const StepReport *report) {
    Output *out = state;
    out->step = report->number + 1;
}

static void show(Output *out, size_t from) {
    size_t n = out->text.length - from;
    if (out->quiet || n == 0) return;
    mark_step(out);
    if (fwrite(text_get(&out->text) + from, 1, n, stdout) != n || fflush(stdout)) out->closed = true;
}

// The decode loop's emit: false ends the output.
static bool take_token(void *state, int token) {
    Output *out = state;
    LOCAL_TEXT piece = {0};
    size_t from = out->text.length;
    bool ok = true;
    if (out->stream.tokenizer) {
        ok = stream_next(&out->stream, token, &piece, &out->error);
        out->stopped = ok && stop_feed(&out->filter, text_get(&piece), piece.length, &out->text);
        show(out, from);
    }
    out->interrupted = interrupt_seen();
    return ok && !out->stopped && !out->interrupted && !out->closed;
}

static void end_stream(Output *out) {
    LOCAL_TEXT piece = {0};
    size_t from = out->text.length;
    if (out->stream.tokenizer && !out->stopped) {
        stream_end(&out->stream, &piece, &out->error);
        out->stopped = stop_feed(&out->filter, text_get(&piece), piece.length, &out->text);
        if (!out->stopped) stop_flush(&out->filter, &out->text);
        show(out, from);
    }
}

// --- one run ---------------------------------------------------------------------------------------------

typedef struct {
    const GenerateOptions *o;
    Processes processes;
    Models models;
    Line line; // until the first token comes
    Method method;
    IdList prompt;
    const Template *template; // that the prompt is in; NULL: none
    Output out;
    DecodeResult result;
} Run;

// The text itself shows how far it is, and ends by emit.
static bool say(void *state, const char *what, double share) {
    Run *r = state;
    if (what && strcmp(what, DECODING) == 0) {
        line_clear(&r->line);
        return true;
    }
    Progress line = line_progress(&r->line);
    return line.say(line.state, what, share) || r->result.steps > 0;
}

static bool open_run(Run *r, Error *e) {
    const GenerateOptions *o = r->o;
    ModelChoice choice = o->models;
    Sampling sampling = {o->temperature, o->top_k, o->top_p};
    choice.engine.progress = (Progress){say, r};
    choice.engine.team = processes_team(&r->processes);
    if (!models_open(&r->models, &choice, e)) return false;
    MethodEnv env = models_env(&r->models, &sampling, o->seed, o->ignore_eos);
    return method_open(&r->method, o->method, &env, e) && processes_fit(&r->processes, &r->method, e) &&
           (o->verification == VERIFICATION_TOKEN || method_drafts_chain(&r->method, e));
}

// Decodes the model's own continuation without showing it.
static bool find_answer(Run *r, DecodeOptions *d, DecodeResult *answer, Error *e) {
    LOCAL(method_close) Method plain = {0};
    MethodEnv env = models_env(&r->models, &d->sampling, d->seed, d->ignore_eos);
    DecodeOptions silent = *d;
    silent.emit = NULL, silent.step = NULL;
    if (!method_open(&plain, "autoregressive", &env, e)) return false;
    bool ok =
        decode(&r->models.target.session, &plain, r->prompt.ids, (int)r->prompt.count, &silent, answer, e);
    d->answer = answer->ids;
    d->answer_count = answer->tokens;
    return ok;
}

static bool decode_answered(Run *r, DecodeOptions *d, Error *e) {
    LOCAL(decode_result_release) DecodeResult answer = {0};
    bool ok = !(r->method.info->needs & NEEDS_ANSWER) || find_answer(r, d, &answer, e);
    return ok && decode(&r->models.target.session, &r->method, r->prompt.ids, (int)r->prompt.count, d,
                        &r->result, e);
}

static bool decode_run(Run *r, Error *e) {
    const GenerateOptions *o = r->o;
    DecodeOptions d = {.max_tokens = o->max_tokens,
                       .eos = r->models.target.model.eos,
                       .eos_count = r->models.target.model.eos_count,
                       .ignore_eos = o->ignore_eos,
                       .sampling = {o->temperature, o->top_k, o->top_p},
                       .verification = o->verification,
                       .seed = o->seed,
                       .layout = o->models.engine.layout,
                       .merge = !o->models.engine.no_merge,
                       .max_rows = o->models.engine.max_rows,
                       .prefill_chunk = o->prefill_chunk,
                       .clock = clock_monotonic(),
                       .emit = take_token,
                       .step = count_step,
                       .state = &r->out};
    if (o->stops.count && !r->models.target.tokenizer)
        return error_input(e, "--stop needs a tokenizer.json, which '%s' does not have", r->o->models.target);
    stream_begin(&r->out.stream, r->models.target.tokenizer, true);
    if (!decode_answered(r, &d, e)) return false;
    end_stream(&r->out);
    if (r->out.error.kind == ERROR_NONE) return true;
    *e = r->out.error;
    return false;
}

static void close_run(Run *r) {
    decode_result_release(&r->result);
    method_close(&r->method);
    stream_release(&r->out.stream);
    stop_release(&r->out.filter);
    text_release(&r->out.text);
    ids_release(&r->prompt);
    models_close(&r->models);
}

// --- the report ----------------------------------------------------------------------------------

static double decode_seconds(const DecodeResult *d) {
    return d->propose_s + d->forward_s + d->verify_s + d->observe_s;
}

static const char *ended_by(const Run *r) {
    if (r->out.interrupted) return "interrupt";
    if (r->out.stopped) return "stop";
    if (r->result.ended_by_eos) return "eos";
    return r->result.tokens < r->o->max_tokens ? "context" : "length";
}

static void method_text(const Run *r, Text *out) {
    const MethodInfo *info = r->method.info;
    text_puts(out, info->name);
    if (info->param_count) text_puts(out, ":");
    args_write(info->params, info->param_count, r->method.values, out);
}

static void print_memory(const char *what, const EngineMemory *m) {
    const double gigabyte = 1e-9;
    fprintf(stderr, "%-9s weights %.3f GB, cache %.3f GB, step %.3f GB\n", what,
            (double)m->weights * gigabyte, (double)m->cache * gigabyte, (double)m->step * gigabyte);
}

static void print_ranks(const DecodeResult *d) {
    double each = d->times.collectives ? 1e6 / d->times.collectives : 0;
    fprintf(stderr,
            "ranks     %d processes, a collective a step: %.1f us of %zu bytes a rank, of which %.1f us",
            d->ranks, each * d->times.collective_s, d->times.bytes, each * d->times.message_s);
    fprintf(stderr,
            " is the message and the rest waits for the slowest rank; %.2f rows a step are run again\n",
            d->times.collectives ? (double)d->times.again / d->times.collectives : 0);
}

static void print_stats(const Run *r) {
    const DecodeResult *d = &r->result;
    const double gigabyte = 1e-9;
    BackendReport b;
    LOCAL_TEXT method = {0};
    Error gpu = {0};
    double s = decode_seconds(d), share = s > 0 ? 100 / s : 0, steps = d->steps > 0 ? d->steps : 1;
    r->models.target.session.backend->report(r->models.target.session.self, &b);
    const char *refused = strcmp(b.name, "cpu") == 0 ? engine_kernels_refused() : NULL;
    method_text(r, &method);
    if (r->models.target.model.stand_in[0])
        fprintf(stderr, "stand-in  %s\n", r->models.target.model.stand_in);
    if (r->models.target.model.quantised[0])
        fprintf(stderr, "quantised %s\n", r->models.target.model.quantised);
    if (r->template) fprintf(stderr, "template  %s\n", r->template->name);
    fprintf(stderr, "method    %s\n", SHOWN(text_get(&method)));
    fprintf(stderr, "engine    %s, kernels %s, compute %s\n", b.device, b.isa,
            compute_name(r->models.target.session.compute));
    if (refused) fprintf(stderr, "warning   %s\n", refused);
    if (engine_passes_over(r->o->models.engine.device, &gpu)) fprintf(stderr, "warning   %s\n", gpu.text);
    print_memory("memory", &r->models.memory);
    if (r->o->models.draft) print_memory("draft", &r->models.draft_memory);
    for (int i = 0; i < ADAPTER_ROLES; i++)
        if (r->o->models.adapters[i]) print_memory(adapter_role_name(i), &r->models.adapter_memory[i]);
    fprintf(stderr, "prefill   %zu tokens in %.3f s\n", r->prompt.count, d->prefill_s);
    fprintf(stderr, "decode    %d tokens in %.3f s, %.1f tokens/s, ended by %s\n", d->tokens, s,
            s > 0 ? d->tokens / s : 0, ended_by(r));
    fprintf(stderr, "steps     %d, S %.3f tokens a step, %.1f rows a step, %.3f ms a step\n", d->steps, d->S,
            d->rows / steps, 1e3 * s / steps);
    fprintf(stderr, "time      propose %.1f%%, forward %.1f%%, verify %.1f%%, observe %.1f%%\n",
            share * d->propose_s, share * d->forward_s, share * d->verify_s, share * d->observe_s);
    if (d->device.run >= 0)
        fprintf(stderr,
                "device    layers %.1f%%, head %.1f%%, commit %.1f%% of that time, by its own clock\n",
                share * d->device.run, share * d->device.head, share * d->device.commit);
    if (d->ranks) print_ranks(d);
    for (int i = 0; i < d->parts && d->parts > 1; i++)
        fprintf(stderr, "rank %-4d %.1f rows a step\n", i, d->part_rows[i] / steps);
    for (int i = 0; i < d->source_count; i++)
        if (d->sources[i].rows > 0)
            fprintf(stderr, "source    %s: %.1f rows a step, won %.1f%% of steps with %.2f tokens\n",
                    d->sources[i].name, d->sources[i].rows / steps, 100.0 * d->sources[i].won / steps,
                    d->sources[i].won ? d->sources[i].tokens / d->sources[i].won : 0);
    text_clear(&method);
    if (r->method.info->state) r->method.info->state(r->method.self, &method);
    if (method.length) fprintf(stderr, "state     %s\n", text_get(&method));
    fprintf(stderr, "weights   %.3f GB a step, read at %.1f GB/s\n", (double)b.weight_bytes * gigabyte,
            d->forward_s > 0 ? (double)b.weight_bytes * gigabyte * d->steps / d->forward_s : 0);
}

static json_t *ranks_json(const DecodeResult *d) {
    return json_pack("{s:i, s:f, s:f, s:i, s:I, s:i}", "processes", d->ranks, "collective_s",
                     d->times.collective_s, "message_s", d->times.message_s, "collectives",
                     d->times.collectives, "bytes", (json_int_t)d->times.bytes, "again", d->times.again);
}

static bool print_json(const Run *r, Error *e) {
    const DecodeResult *d = &r->result;
    BackendReport b;
    LOCAL_TEXT method = {0};
    double s = decode_seconds(d);
    json_t *ids = json_array();
    for (int i = 0; i < d->tokens; i++) json_array_append_new(ids, json_integer(d->ids[i]));
    r->models.target.session.backend->report(r->models.target.session.self, &b);
    method_text(r, &method);
    const Model *m = &r->models.target.model;
    const PhaseSeconds *x = &d->device;
    json_t *device =
        x->run < 0 ? NULL
                   : json_pack("{s:f, s:f, s:f}", "layers", x->run, "head", x->head, "commit", x->commit);
    json_t *root =
        json_pack("{s:o, s:s%, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:i, s:f, s:s, "
                  "s:s, s:s, s:s, s:I, s:o*, s:o*, s:s*, s:s*, s:s*}",
                  "ids", ids, "text", text_get(&r->out.text), r->out.text.length, "tokens", d->tokens,
                  "steps", d->steps, "S", d->S, "tokens_per_s", s > 0 ? d->tokens / s : 0.0, "prefill_s",
                  d->prefill_s, "propose_s", d->propose_s, "forward_s", d->forward_s, "verify_s", d->verify_s,
                  "observe_s", d->observe_s, "method", text_get(&method), "model", r->o->models.target,
                  "prompt_tokens", (int)r->prompt.count, "rows", d->rows, "ended_by", ended_by(r), "device",
                  b.device, "isa", b.isa, "compute", compute_name(r->models.target.session.compute), "seed",
                  (json_int_t)r->o->seed, "device_s", device, "ranks", d->ranks ? ranks_json(d) : NULL,
                  "stand_in", m->stand_in[0] ? m->stand_in : NULL, "template",
                  r->template ? r->template->name : NULL, "quantised", m->quantised[0] ? m->quantised : NULL);
    return json_print(root, 0, stdout) ||
           error_system(e, "cannot make the JSON object: no memory, or the model's path is not UTF-8");
}

static bool report(Run *r, int *code, Error *e) {
    if (!r->o->json && !r->models.target.tokenizer)
        for (int i = 0; i < r->result.tokens; i++) printf("%s%d", i ? "," : "", r->result.ids[i]);
    if (r->out.colour && r->out.steps) fputs(PLAIN, stdout);
    if (!r->o->json) puts("");
    if (r->o->steps)
        printf("%d tokens, %d steps, %.1f a step\n", r->result.tokens, r->result.steps, r->result.S);
    if (r->o->stats) print_stats(r);
    if (r->out.interrupted) *code = EXIT_INTERRUPTED;
    return !r->o->json || print_json(r, e);
}

static bool check_options(const GenerateOptions *o, const Words *rest, Error *e) {
    if (rest->count > 2)
        return error_input(e, "generate: '%s' is one argument too many; put the prompt in quotes",
                           rest->items[2]);
    if ((rest->count == 2) + (o->file != NULL) + (o->ids != NULL) > 1)
        return error_input(e, "generate: give one prompt only: a text, -f FILE or --ids");
    if (o->steps && o->json)
        return error_input(e, "generate: --steps marks the text, and --json prints none: leave out one");
    for (int i = 0; i < o->stops.count; i++)
        if (!o->stops.items[i][0]) return error_input(e, "generate: --stop may not be empty");
    return true;
}

static bool read_environment(void *options, Error *e) {
    const char *threads = getenv("OUTPACE_THREADS");
    return !threads || args_set_option(&command_generate.shared, 1, options, "threads", threads, e) ||
           error_within(e, "OUTPACE_THREADS");
}

static bool run(void *options, CommandLine *line, Error *e) {
    GenerateOptions *o = options;
    if (!check_options(o, &line->words, e)) return false;
    o->models.target = line->words.items[0];
    Run r = {.o = o,
             .out = {.quiet = o->json,
                     .steps = o->steps,
                     .colour = terminal_width() && !getenv("NO_COLOR"),
                     .filter.stops = &o->stops}};
    PromptSource source = {.text = line->words.items[1],
                           .file = o->file,
                           .ids = o->ids,
                           .template = o->template,
                           .system = o->system};
    if (!processes_join(&r.processes, o->ranks, e)) return false;
    if (processes_follows(&r.processes)) return processes_follow(&r.processes, e);
    line_begin(&r.line, true);
    interrupt_catch();
    bool ok = open_run(&r, e) && prompt_read(&source, r.models.target.tokenizer, &r.prompt, e);
    if (ok && o->template) r.template = tokenizer_template(r.models.target.tokenizer, o->template, NULL);
    line_clear(&r.line);
    ok = ok && decode_run(&r, e) && report(&r, &line->code, e);
    close_run(&r);
    processes_leave(&r.processes);
    return ok;
}

const Command command_generate = {.name = "generate",
                                  .usage = "MODEL [PROMPT | -f FILE | - | --ids 1,2,3] [OPTIONS]",
                                  .summary = "generate text with a model by one method",
                                  .arguments = {1, WORDS_MAX},
                                  COMMAND_OPTIONS(OPTIONS, GenerateOptions),
                                  .shared = MODEL_SET(offsetof(GenerateOptions, models.engine), "batch"),
                                  .begin = read_environment,
                                  .run = run};
