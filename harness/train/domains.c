#include "harness/train/domains.h"

#include "engine/train/ngram.h"

#include <math.h>
#include <string.h>

enum { ORDER = 5 };

typedef struct Chosen {
    const TrainRun *run;
    const DomainName *name;
} Chosen;

static bool is_chosen(const void *state, size_t document) {
    const Chosen *c = state;
    return domain_same(c->name, &c->run->file.domains[c->run->origins[document].file]);
}

int domains_list(const TrainFile *f, DomainName *out) {
    int count = 0;
    for (int i = 0; i < f->files.count; i++) {
        int k = 0;
        while (k < count && !domain_same(&out[k], &f->domains[i])) k++;
        if (k == count) out[count++] = f->domains[i];
    }
    return count;
}

static int find_domains(const TrainFile *f, DomainLoss *out) {
    DomainName names[WORDS_MAX];
    int count = domains_list(f, names);
    for (int i = 0; i < count; i++) out[i] = (DomainLoss){.name = names[i], .loss = NAN, .counted = NAN};
    return count;
}

// Of the feed that the trainer holds out now.
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
    out->count = find_domains(&r->file, out->list);
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

static bool is_new(const DomainPrompt *list, int count, const DomainPrompt *p) {
    for (int i = 0; i < count; i++)
        if (list[i].count == p->count && !memcmp(list[i].ids, p->ids, (size_t)p->count * sizeof *p->ids))
            return false;
    return true;
}

int domains_prompts(const TrainRun *r, const Feed *f, const DomainName *name, DomainPrompt *out, int most) {
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
