// Losses by domain, and the report. Prompts are the beginnings of held-out documents. A method's S is all its
// tokens divided by all its steps, at temperature 0 and at 0.3. Loops are counted in greedy outputs, which
// are the same for every method, and for comparison in the documents' own continuations. Invariant: the last
// of the losses is that of all domains together.
#include "harness/train/report.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "harness/models/models.h"
#include "harness/cli/terminal.h"
#include "harness/run/ledger.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// --- domains ---------------------------------------------------------------------------------------------

enum { ORDER = 5 }; // of the n-grams

static bool domain_same(const DomainName *a, const DomainName *b) {
    return a->length == b->length && memcmp(a->text, b->text, (size_t)a->length) == 0;
}

// One domain of a run, as feed_narrow takes it.
typedef struct Chosen {
    const TrainRun *run;
    const DomainName *name;
} Chosen;

static bool is_chosen(const void *state, size_t document) {
    const Chosen *c = state;
    return domain_same(c->name, &c->run->file.domains[c->run->origins[document].file]);
}

// The domains of a file, each once. Returns their number, at most WORDS_MAX.
static int list_domains(const TrainFile *f, DomainName *out) {
    int count = 0;
    for (int i = 0; i < f->files.count; i++) {
        int k = 0;
        while (k < count && !domain_same(&out[k], &f->domains[i])) k++;
        if (k == count) out[count++] = f->domains[i];
    }
    return count;
}

// Measures the trainer's current held-out feed.
static bool look(TrainRun *r, const Ngram *counts, DomainLoss *d, Error *e) {
    Trainer *t = &r->trainer;
    const Feed *f = &t->held_out;
    double bytes = 0;
    for (size_t i = 0; i < f->count; i++) bytes += (double)r->origins[f->given[i]].bytes;
    d->documents = f->count;
    d->rows = f->rows;
    if (!f->rows) return true;
    d->bytes = bytes / (double)f->rows;
    if (d->rows > (size_t)t->config.held_out_rows) d->rows = (size_t)t->config.held_out_rows;
    d->loss = trainer_held_out(t);
    if (t->failure.kind != ERROR_NONE) {
        *e = t->failure;
        return false;
    }
    if (counts) d->counted = ngram_loss(counts, &t->held_out, (size_t)t->config.held_out_rows);
    return true;
}

static bool look_at_domain(TrainRun *r, const Ngram *counts, DomainLoss *d, Error *e) {
    Trainer *t = &r->trainer;
    const TrainConfig *c = &t->config;
    Chosen chosen = {r, &d->name};
    Feed all = t->held_out;
    if (!feed_open(&t->held_out, t->corpus, c->held_out, true, c->seed, e)) {
        t->held_out = all;
        return false;
    }
    feed_narrow(&t->held_out, is_chosen, &chosen);
    bool ok = look(r, counts, d, e);
    feed_close(&t->held_out);
    t->held_out = all;
    return ok;
}

bool domains_look(TrainRun *r, bool counts, DomainLosses *out, Error *e) {
    Trainer *t = &r->trainer;
    Ngram m = {0};
    DomainName names[WORDS_MAX];
    out->count = list_domains(&r->file, names);
    for (int i = 0; i < out->count; i++)
        out->list[i] = (DomainLoss){.name = names[i], .loss = NAN, .counted = NAN};
    if (!t->held_out.count)
        return error_input(e, "losses by domain need documents that are held out; set held_out");
    if (counts && !ngram_learn(&m, &t->feed, ORDER, t->config.shape.vocab, e)) return false;
    bool ok = true;
    for (int i = 0; ok && i < out->count; i++) ok = look_at_domain(r, counts ? &m : NULL, &out->list[i], e);
    DomainLoss *all = &out->list[out->count++];
    *all = (DomainLoss){.name = {"all", 3}, .counted = NAN};
    ok = ok && look(r, counts ? &m : NULL, all, e);
    if (counts) ngram_release(&m);
    return ok;
}

static void put_loss(Text *out, double loss, double bytes) {
    if (isnan(loss)) text_puts(out, " | |");
    else text_printf(out, " %.4f | %.4f |", loss, loss / bytes);
}

void domains_text(const DomainLosses *d, Text *out) {
    bool counts = d->count && !isnan(d->list[d->count - 1].counted);
    text_printf(out, "| held out | documents | tokens | bytes a token | nats a token | nats a byte |%s\n",
                counts ? " 5-grams: nats a token | nats a byte |" : "");
    text_printf(out, "| --- | ---: | ---: | ---: | ---: | ---: |%s\n", counts ? " ---: | ---: |" : "");
    for (int i = 0; i < d->count; i++) {
        const DomainLoss *x = &d->list[i];
        text_printf(out, "| %.*s | %zu | %zu | %.3f |", x->name.length, x->name.text, x->documents, x->rows,
                    x->bytes);
        put_loss(out, x->rows ? x->loss : NAN, x->bytes);
        if (counts) put_loss(out, x->rows ? x->counted : NAN, x->bytes);
        text_puts(out, "\n");
    }
}

// --- the report ------------------------------------------------------------------------------------------

enum { PROMPTS_MAX = 200, SAMPLES = 3 };

// The beginning of a document.
typedef struct DomainPrompt {
    const int *ids; // (count), in the corpus
    int count;
    int length; // of the document
} DomainPrompt;

static const double TEMPERATURES[] = {0, 0.3};
enum { TEMPERATURE_COUNT = 2 };

typedef struct Reporting {
    TrainRun *run;
    const TrainReport *o;
    DomainLosses losses;
    DomainPrompt prompts[WORDS_MAX][PROMPTS_MAX];
    int prompt_count[WORDS_MAX];
    Models models;
    Text text;
} Reporting;

// Without the last, which is all of them together.
static int domain_count(const Reporting *g) {
    assert(g->losses.count >= 1 && g->losses.count <= WORDS_MAX + 1);
    return g->losses.count - 1;
}

static bool decode_one(Reporting *g, Method *m, const DomainPrompt *p, double temperature, uint64_t seed,
                       DecodeResult *out, Error *e) {
    const Model *model = &g->models.target.model;
    DecodeOptions d = {.max_tokens = g->o->tokens,
                       .eos = model->eos,
                       .eos_count = model->eos_count,
                       .sampling = {.temperature = temperature, .top_p = 1},
                       .seed = seed,
                       .merge = true,
                       .clock = clock_monotonic()};
    return progress_say(&g->run->file.config.progress, "decoding", -1, e) &&
           decode(&g->models.target.session, m, p->ids, p->count, &d, out, e);
}

static bool is_new(const DomainPrompt *list, int count, const DomainPrompt *p) {
    for (int i = 0; i < count; i++)
        if (list[i].count == p->count && !memcmp(list[i].ids, p->ids, (size_t)p->count * sizeof *p->ids))
            return false;
    return true;
}

// At most `most` prompts of one domain, in the feed's order, no two alike; returns their number. A prompt is
// half of a document, at most LONGEST tokens.
static int find_prompts(const TrainRun *r, const Feed *f, const DomainName *name, DomainPrompt *out,
                        int most) {
    enum { LONGEST = 64, SHORTEST = 4 };
    Chosen chosen = {r, name};
    int count = 0;
    for (size_t i = 0; i < f->count && count < most; i++) {
        size_t document = f->documents[i], begin = corpus_begin(f->corpus, document);
        int length = (int)(f->corpus->ends[document] - begin), half = length / 2;
        DomainPrompt p = {f->corpus->ids + begin, half < LONGEST ? half : LONGEST, length};
        if (half >= SHORTEST && is_chosen(&chosen, document) && is_new(out, count, &p)) out[count++] = p;
    }
    return count;
}

// --- texts -----------------------------------------------------------------------------------------------

static bool put_sample(Reporting *g, const DomainPrompt *p, const DecodeResult *r, Error *e) {
    const Tokenizer *t = g->models.target.tokenizer;
    text_puts(&g->text, "\n~~~~ text\n");
    bool ok = tokenizer_decode(t, p->ids, (size_t)p->count, true, &g->text, e);
    text_puts(&g->text, " [>] ");
    ok = ok && tokenizer_decode(t, r->ids, (size_t)r->tokens, true, &g->text, e);
    text_puts(&g->text, r->ended_by_eos ? "\n~~~~\n" : " [...]\n~~~~\n");
    return ok;
}

static bool put_texts_of(Reporting *g, Method *m, int domain, Text *table, Error *e) {
    const DomainName *name = &g->losses.list[domain].name;
    int looping = 0, ended = 0, own = 0, count = g->prompt_count[domain];
    double tokens = 0;
    text_printf(&g->text, "\n### %.*s\n", name->length, name->text);
    for (int i = 0; i < count; i++) {
        const DomainPrompt *p = &g->prompts[domain][i];
        DecodeResult r = {0};
        int rest = p->length - p->count;
        bool ok = decode_one(g, m, p, 0, 0, &r, e) && (i >= SAMPLES || put_sample(g, p, &r, e));
        looping += ok && repetition_loops(r.ids, r.tokens);
        own += repetition_loops(p->ids + p->count, rest < g->o->tokens ? rest : g->o->tokens);
        ended += r.ended_by_eos;
        tokens += r.tokens;
        decode_result_release(&r);
        if (!ok) return false;
    }
    if (count)
        text_printf(table, "| %.*s | %d | %.1f | %.0f%% | %.0f%% | %.0f%% |\n", name->length, name->text,
                    count, tokens / count, 100.0 * ended / count, 100.0 * looping / count,
                    100.0 * own / count);
    return true;
}

static bool put_texts(Reporting *g, Error *e) {
    MethodEnv env = models_env(&g->models, &(Sampling){.top_p = 1}, 0, false);
    Method m;
    Text table = {0};
    if (!method_open(&m, "autoregressive", &env, e)) return false;
    text_printf(
        &table,
        "\n## Texts\n\nGreedy, at most %d tokens after the beginnings of held-out documents. An output "
        "loops where it ends in\nthe same part three times, or holds the same eight tokens three "
        "times.\n\n"
        "| domain | prompts | tokens | ended | loop | the documents' own |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n",
        g->o->tokens);
    Text before = g->text;
    g->text = (Text){0};
    bool ok = true;
    for (int i = 0; ok && i < domain_count(g); i++) ok = put_texts_of(g, &m, i, &table, e);
    text_puts(&before, text_get(&table));
    text_puts(&before, text_get(&g->text));
    text_release(&g->text);
    text_release(&table);
    g->text = before;
    method_close(&m);
    return ok;
}

// --- methods ---------------------------------------------------------------------------------------------

static bool is_possible(const Reporting *g, const MethodInfo *info) {
    const char *const *has = g->o->adapters;
    return strcmp(info->name, "autoregressive") && strcmp(info->name, "mix") &&
           !(info->needs & (NEEDS_FILE | NEEDS_ANSWER)) && (!(info->needs & NEEDS_DRAFT) || g->o->draft) &&
           (!(info->needs & NEEDS_ADAPTER) || has[ADAPTER_ANY]) &&
           (!(info->needs & NEEDS_HEADS) || has[ADAPTER_FOR_MEDUSA]) &&
           (!(info->needs & NEEDS_EAGLE) || has[ADAPTER_FOR_EAGLE]) &&
           (!(info->needs & NEEDS_EAGLE3) || has[ADAPTER_FOR_EAGLE3]);
}

// Writes the tokens a step over a domain's prompts.
static bool put_S(Reporting *g, Method *m, int domain, double temperature, Error *e) {
    double tokens = 0, steps = 0;
    for (int i = 0; i < g->prompt_count[domain]; i++) {
        DecodeResult r = {0};
        bool ok = decode_one(g, m, &g->prompts[domain][i], temperature, (uint64_t)i, &r, e);
        tokens += r.tokens;
        steps += r.steps;
        decode_result_release(&r);
        if (!ok) return false;
    }
    if (steps > 0) text_printf(&g->text, " %.2f |", tokens / steps);
    else text_puts(&g->text, " |");
    return true;
}

static bool put_method(Reporting *g, const MethodInfo *info, Error *e) {
    bool ok = true;
    text_printf(&g->text, "| %s |", info->name);
    for (int t = 0; ok && t < TEMPERATURE_COUNT; t++) {
        Sampling sampling = {.temperature = TEMPERATURES[t], .top_p = 1};
        MethodEnv env = models_env(&g->models, &sampling, 0, false);
        Method m;
        if (!method_open(&m, info->name, &env, e)) return false;
        for (int i = 0; ok && i < domain_count(g); i++) ok = put_S(g, &m, i, TEMPERATURES[t], e);
        method_close(&m);
    }
    text_puts(&g->text, "\n");
    return ok;
}

static bool put_methods(Reporting *g, Error *e) {
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    text_puts(&g->text, "\n## Tokens a step\n\n| method |");
    for (int t = 0; t < TEMPERATURE_COUNT; t++)
        for (int i = 0; i < domain_count(g); i++)
            text_printf(&g->text, " %.*s, %s |", g->losses.list[i].name.length, g->losses.list[i].name.text,
                        TEMPERATURES[t] > 0 ? "t 0.3" : "greedy");
    text_puts(&g->text, "\n| --- |");
    for (int i = 0; i < TEMPERATURE_COUNT * domain_count(g); i++) text_puts(&g->text, " ---: |");
    text_puts(&g->text, "\n");
    for (size_t i = 0; i < count; i++)
        if (is_possible(g, table[i]) && !put_method(g, table[i], e)) return false;
    return true;
}

// --- the whole -------------------------------------------------------------------------------------------

static bool open_models(Reporting *g, Error *e) {
    const TrainFile *f = &g->run->file;
    ModelChoice c = {.target = g->o->model,
                     .draft = g->o->draft,
                     .engine = {.threads = f->config.threads, .progress = f->config.progress}};
    memcpy(c.adapters, g->o->adapters, sizeof c.adapters);
    return models_open(&g->models, &c, e);
}

static bool finish(Reporting *g, Error *e) {
    char *path = file_path(g->o->dir, "report.md");
    Output *out = &g->run->out;
    static const OutputKind KIND = {.start = "# Report: "};
    bool ok = output_add(out, path, &KIND, text_get(&g->text), g->text.length, e) && output_finish(out, e);
    line_clear(&g->run->line);
    if (ok) fputs(text_get(&g->text), stdout);
    mem_free(path);
    return ok;
}

bool train_report(TrainRun *r, const TrainReport *o, Error *e) {
    Reporting *g = mem_new(1, sizeof *g);
    g->run = r;
    g->o = o;
    text_printf(&g->text, "# Report: %s\n\n## Losses\n\n", o->model);
    bool ok = domains_look(r, true, &g->losses, e);
    domains_text(&g->losses, &g->text);
    int most = o->prompts < PROMPTS_MAX ? o->prompts : PROMPTS_MAX;
    for (int i = 0; ok && i < domain_count(g); i++)
        g->prompt_count[i] =
            find_prompts(r, &r->trainer.held_out, &g->losses.list[i].name, g->prompts[i], most);
    ok = ok && open_models(g, e) && put_texts(g, e) && put_methods(g, e) && finish(g, e);
    models_close(&g->models);
    text_release(&g->text);
    mem_free(g);
    return ok;
}

// --- outputs ---------------------------------------------------------------------------------------------

// Prompt and output are decoded together, because a tokenizer may drop the blank before a text's first word.
static bool put_document(Reporting *g, const DomainPrompt *p, const DecodeResult *r, Error *e) {
    size_t n = (size_t)p->count, more = (size_t)r->tokens;
    int *ids = mem_new(n + more, sizeof *ids);
    memcpy(ids, p->ids, n * sizeof *ids);
    if (more) memcpy(ids + n, r->ids, more * sizeof *ids);
    bool ok = tokenizer_decode(g->models.target.tokenizer, ids, n + more, true, &g->text, e);
    text_printf(&g->text, "\n%s\n", g->run->file.separator);
    mem_free(ids);
    return ok;
}

static bool put_outputs(Reporting *g, double temperature, const DomainPrompt *list, int count, int first,
                        Error *e) {
    MethodEnv env = models_env(&g->models, &(Sampling){.temperature = temperature, .top_p = 1}, 0, false);
    Method m;
    bool ok = true;
    if (!method_open(&m, "autoregressive", &env, e)) return false;
    for (int i = first; ok && i < count; i += TEMPERATURE_COUNT) {
        DecodeResult r = {0};
        ok = decode_one(g, &m, &list[i], temperature, (uint64_t)i, &r, e) && put_document(g, &list[i], &r, e);
        decode_result_release(&r);
    }
    method_close(&m);
    return ok;
}

// Prompts alternate between the temperatures.
static bool put_domain_outputs(Reporting *g, const DomainName *name, DomainPrompt *list, Error *e) {
    int count = find_prompts(g->run, &g->run->trainer.feed, name, list, g->o->prompts);
    for (int t = 0; t < TEMPERATURE_COUNT; t++)
        if (!put_outputs(g, TEMPERATURES[t], list, count, t, e)) return false;
    return true;
}

bool train_outputs(TrainRun *r, const TrainReport *o, Error *e) {
    if (!r->file.separator)
        return error_input(e, "outputs need a separator between them: set it, or give --separator LINE");
    DomainName names[WORDS_MAX];
    Reporting *g = mem_new(1, sizeof *g);
    DomainPrompt *list = mem_new((size_t)o->prompts, sizeof *list);
    int count = list_domains(&r->file, names);
    g->run = r;
    g->o = o;
    bool ok = open_models(g, e);
    for (int i = 0; ok && i < count; i++) ok = put_domain_outputs(g, &names[i], list, e);
    if (ok) line_clear(&r->line);
    ok = ok && output_add(&r->out, o->dir, &(OutputKind){0}, text_get(&g->text), g->text.length, e) &&
         output_finish(&r->out, e);
    if (ok) printf("wrote %zu bytes of outputs to %s\n", g->text.length, SHOWN(o->dir));
    models_close(&g->models);
    text_release(&g->text);
    mem_free(list);
    mem_free(g);
    return ok;
}
