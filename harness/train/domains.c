// Losses by domain, and texts. Prompts are the beginnings of documents. Invariant: the last of the losses is
// that of all domains together.
#include "harness/train/domains.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "harness/inputs/models.h"
#include "harness/cli/terminal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// --- losses ----------------------------------------------------------------------------------------------

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
static bool look(TrainRun *r, DomainLoss *d, Error *e) {
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
    return true;
}

static bool look_at_domain(TrainRun *r, DomainLoss *d, Error *e) {
    Trainer *t = &r->trainer;
    const TrainConfig *c = &t->config;
    Chosen chosen = {r, &d->name};
    Feed all = t->held_out;
    if (!feed_open(&t->held_out, t->corpus, c->held_out, true, c->seed, e)) {
        t->held_out = all;
        return false;
    }
    feed_narrow(&t->held_out, is_chosen, &chosen);
    bool ok = look(r, d, e);
    feed_close(&t->held_out);
    t->held_out = all;
    return ok;
}

bool domains_look(TrainRun *r, DomainLosses *out, Error *e) {
    DomainName names[WORDS_MAX];
    out->count = list_domains(&r->file, names);
    for (int i = 0; i < out->count; i++) out->list[i] = (DomainLoss){.name = names[i], .loss = NAN};
    if (!r->trainer.held_out.count)
        return error_input(e, "losses by domain need documents that are held out; set held_out");
    bool ok = true;
    for (int i = 0; ok && i < out->count; i++) ok = look_at_domain(r, &out->list[i], e);
    DomainLoss *all = &out->list[out->count++];
    *all = (DomainLoss){.name = {"all", 3}};
    return ok && look(r, all, e);
}

void domains_text(const DomainLosses *d, Text *out) {
    text_puts(out, "| held out | documents | tokens | bytes a token | nats a token | nats a byte |\n"
                   "| --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (int i = 0; i < d->count; i++) {
        const DomainLoss *x = &d->list[i];
        text_printf(out, "| %.*s | %zu | %zu | %.3f |", x->name.length, x->name.text, x->documents, x->rows,
                    x->bytes);
        if (x->rows) text_printf(out, " %.4f | %.4f |\n", x->loss, x->loss / x->bytes);
        else text_puts(out, " | |\n");
    }
}

// --- texts -----------------------------------------------------------------------------------------------

// The beginning of a document.
typedef struct DomainPrompt {
    const int *ids; // (count), in the corpus
    int count;
} DomainPrompt;

static const double TEMPERATURES[] = {0, 0.3};
enum { TEMPERATURE_COUNT = 2 };

typedef struct DomainWriter {
    TrainRun *run;
    const DomainTexts *o;
    Models models;
    Text text;
} DomainWriter;

// At most `most` prompts of one domain that was learnt, in the feed's order, no two alike; returns their
// number. A prompt is half of a document, at most LONGEST tokens.
static int find_prompts(const TrainRun *r, const DomainName *name, DomainPrompt *out, int most) {
    enum { LONGEST = 64, SHORTEST = 4 };
    const Feed *f = &r->trainer.feed;
    Chosen chosen = {r, name};
    int count = 0;
    for (size_t i = 0; i < f->count && count < most; i++) {
        size_t document = f->documents[i], begin = corpus_begin(f->corpus, document);
        int half = (int)(f->corpus->ends[document] - begin) / 2;
        DomainPrompt p = {f->corpus->ids + begin, half < LONGEST ? half : LONGEST};
        if (half < SHORTEST || !is_chosen(&chosen, document)) continue;
        int k = 0;
        while (k < count &&
               (out[k].count != p.count || memcmp(out[k].ids, p.ids, (size_t)p.count * sizeof *p.ids)))
            k++;
        if (k == count) out[count++] = p;
    }
    return count;
}

static bool put_outputs(DomainWriter *w, double temperature, const DomainPrompt *list, int count, int first,
                        Error *e) {
    MethodEnv env = models_env(&w->models, &(Sampling){.temperature = temperature, .top_p = 1}, 0, false);
    LOCAL(method_close) Method m = {0};
    bool ok = true;
    if (!method_open(&m, "autoregressive", &env, e)) return false;
    for (int i = first; ok && i < count; i += TEMPERATURE_COUNT) {
        const Model *model = &w->models.target.model;
        const DomainPrompt *p = &list[i];
        LOCAL(decode_result_release) DecodeResult r = {0};
        DecodeOptions d = {.max_tokens = w->o->tokens,
                           .eos = model->eos,
                           .eos_count = model->eos_count,
                           .sampling = {.temperature = temperature, .top_p = 1},
                           .seed = (uint64_t)i,
                           .merge = true,
                           .clock = clock_monotonic()};
        ok = progress_say(&w->run->file.config.progress, "decoding", -1, e) &&
             decode(&w->models.target.session, &m, p->ids, p->count, &d, &r, e);
        // Decoded together, because a tokenizer may drop the blank before a text's first word.
        size_t n = (size_t)p->count, more = ok ? (size_t)r.tokens : 0;
        LOCAL_MEMORY int *ids = mem_new(n + more, sizeof *ids);
        memcpy(ids, p->ids, n * sizeof *ids);
        if (more) memcpy(ids + n, r.ids, more * sizeof *ids);
        ok = ok && tokenizer_decode(w->models.target.tokenizer, ids, n + more, true, &w->text, e);
        text_printf(&w->text, "\n%s\n", w->run->file.separator);
    }
    return ok;
}

bool domains_write(TrainRun *r, const DomainTexts *o, Error *e) {
    if (!r->file.separator)
        return error_input(e, "outputs need a separator between them: set it, or give --separator LINE");
    DomainName names[WORDS_MAX];
    DomainWriter w = {.run = r, .o = o};
    ModelChoice c = {.target = o->model,
                     .engine = {.threads = r->file.config.threads, .progress = r->file.config.progress}};
    LOCAL_MEMORY DomainPrompt *list = mem_new((size_t)o->prompts, sizeof *list);
    int count = list_domains(&r->file, names);
    bool ok = models_open(&w.models, &c, e);
    for (int i = 0; ok && i < count; i++) {
        int prompts = find_prompts(r, &names[i], list, o->prompts);
        for (int t = 0; ok && t < TEMPERATURE_COUNT; t++) // which prompts alternate between
            ok = put_outputs(&w, TEMPERATURES[t], list, prompts, t, e);
    }
    if (ok) line_clear(&r->line);
    ok = ok && output_add(&r->out, o->file, &(OutputKind){0}, text_get(&w.text), w.text.length, e) &&
         output_finish(&r->out, e);
    if (ok) fprintf(r->tell, "wrote %zu bytes of outputs to %s\n", w.text.length, SHOWN(o->file));
    models_close(&w.models);
    text_release(&w.text);
    return ok;
}
