#include "engine/train/trainer.h"

#include "engine/base/memory.h"

#include <math.h>

static bool check(const TrainConfig *c, const Corpus *corpus, Error *e) {
    const OptimizerOptions *o = &c->optimizer;
    int context = c->shape.context;
    if (c->batch < 1 || c->pass < 1 || c->batch % c->pass)
        return error_input(e, "a batch of %d rows must be a multiple of the %d rows of a pass", c->batch,
                           c->pass);
    if (c->pass % context)
        return error_input(e, "the %d rows of a pass must be a multiple of the context, %d", c->pass,
                           context);
    if (o->steps < 0 || o->warmup < 0)
        return error_input(e, "%d steps with %d of warm-up: neither may be negative", o->steps, o->warmup);
    if (!corpus->documents) return error_input(e, "there is no document of two tokens or more to learn from");
    for (size_t i = 0; i < corpus->count; i++)
        if (corpus->ids[i] < 0 || corpus->ids[i] >= c->shape.vocab)
            return error_input(e, "the text has the token %d, the model's vocabulary ends at %d",
                               corpus->ids[i], c->shape.vocab - 1);
    return true;
}

static bool open_feeds(Trainer *t, Error *e) {
    const TrainConfig *c = &t->config;
    size_t rows = (size_t)c->pass;
    t->tokens = mem_alloc(rows, sizeof *t->tokens);
    t->targets = mem_alloc(rows, sizeof *t->targets);
    t->start = mem_alloc(rows, sizeof *t->start);
    if (!t->tokens || !t->targets || !t->start)
        return error_system(e, "out of memory for a pass of %zu rows", rows);
    return feed_open(&t->feed, t->corpus, c->held_out, false, c->seed, e) &&
           (c->held_out <= 0 || feed_open(&t->held_out, t->corpus, c->held_out, true, c->seed, e));
}

bool trainer_open(Trainer *t, const TrainConfig *c, const Corpus *corpus, Error *e) {
    *t = (Trainer){.config = *c, .corpus = corpus};
    NetworkOptions n = {.rows = c->pass, .longest = c->shape.context, .threads = c->threads, .isa = c->isa};
    bool ok = shape_check(&c->shape, "the model to train", e) && check(c, corpus, e) &&
              network_open(&t->network, &c->shape, &n, e) &&
              optimizer_open(&t->optimizer, &c->optimizer, &t->network, e) && open_feeds(t, e);
    if (ok) parameters_start(&t->network.parameters, &c->shape, c->seed, t->network.weights);
    else trainer_close(t);
    return ok;
}

void trainer_close(Trainer *t) {
    feed_close(&t->feed);
    feed_close(&t->held_out);
    optimizer_close(&t->optimizer);
    network_close(&t->network);
    mem_free(t->tokens);
    mem_free(t->targets);
    mem_free(t->start);
    *t = (Trainer){0};
}

StepReport trainer_step(Trainer *t) {
    const TrainConfig *c = &t->config;
    double loss = 0;
    t->step++;
    for (int done = 0; done < c->batch; done += c->pass) {
        Batch b = {t->tokens, t->targets, t->start, c->pass};
        feed_fill(&t->feed, c->pass, c->shape.context, t->tokens, t->targets, t->start);
        loss += network_learn(&t->network, &b, 1.0f / (float)c->batch);
    }
    double length = optimizer_step(&t->optimizer, &t->network, t->step);
    t->loss = loss / c->batch;
    return (StepReport){t->loss, length, optimizer_rate(&c->optimizer, t->step)};
}

double trainer_held_out(Trainer *t) {
    const TrainConfig *c = &t->config;
    size_t rows = t->held_out.rows, most = (size_t)c->held_out_rows;
    double loss = 0;
    if (!t->held_out.count) return NAN;
    if (rows > most) rows = most;
    feed_seek(&t->held_out, 0, 0, 0);
    for (size_t done = 0; done < rows; done += (size_t)c->pass) {
        int n = rows - done < (size_t)c->pass ? (int)(rows - done) : c->pass;
        Batch b = {t->tokens, t->targets, t->start, n};
        feed_fill(&t->held_out, n, c->shape.context, t->tokens, t->targets, t->start);
        loss += network_loss(&t->network, &b);
    }
    return loss / (double)rows;
}
