// Invariants of an open trainer, between steps:
//
// 1. Every network has an optimizer, and all networks share the first one's threads.
// 2. Gradients are zero.
// 3. The feed has advanced by exactly `step` batches.
#include "engine/train/trainer.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <assert.h>
#include <math.h>

static void trainer_check(const Trainer *t) {
    assert(t->count >= 1 && t->count <= ADAPTER_HEADS_MAX);
    assert(t->step >= 0 && t->step <= t->config.optimizer.steps);
    assert(t->config.batch % t->config.pass == 0);
    for (int i = 0; i < t->count; i++)
        assert(t->optimizers[i].mean && t->networks[i].pool == t->networks[0].pool);
}

bool trainer_check_config(const TrainConfig *c, Error *e) {
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
    if (o->begun < 0 || o->begun > o->steps)
        return error_input(e, "%d steps begun of %d: there must be as many or fewer", o->begun, o->steps);
    if (c->teacher && (c->teacher->model->shape.vocab != c->shape.vocab ||
                       c->teacher->model->shape.real_vocab != c->shape.real_vocab))
        return error_input(e, "the teacher's vocabulary of %d tokens is not the model's of %d",
                           c->teacher->model->shape.real_vocab, c->shape.real_vocab);
    return true;
}

static bool check_corpus(const TrainConfig *c, const Corpus *corpus, Error *e) {
    if (!corpus->documents) return error_input(e, "there is no document of two tokens or more to learn from");
    for (size_t i = 0; i < corpus->count && c->masks; i++)
        if (corpus->ids[i] == c->shape.mask_token)
            return error_input(e, "the text has the token %d, which is the mask: choose another piece for it",
                               corpus->ids[i]);
    for (size_t i = 0; i < corpus->count; i++)
        if (corpus->ids[i] < 0 || corpus->ids[i] >= c->shape.vocab)
            return error_input(e, "the text has the token %d, the model's vocabulary ends at %d",
                               corpus->ids[i], c->shape.vocab - 1);
    return true;
}

static bool open_feeds(Trainer *t, Error *e) {
    const TrainConfig *c = &t->config;
    size_t rows = (size_t)c->pass;
    t->tokens = mem_new(rows, sizeof *t->tokens);
    t->targets = mem_new(rows, sizeof *t->targets);
    t->start = mem_new(rows, sizeof *t->start);
    t->masked = mem_new(rows, sizeof *t->masked);
    t->masked_start = mem_new(rows, sizeof *t->masked_start);
    t->places = mem_new(rows, sizeof *t->places);
    return feed_open(&t->feed, t->corpus, c->held_out, false, c->seed, e) &&
           (c->held_out <= 0 || feed_open(&t->held_out, t->corpus, c->held_out, true, c->seed, e));
}

static bool open_network(Trainer *t, int i, Error *e) {
    const TrainConfig *c = &t->config;
    Network *n = &t->networks[i];
    NetworkOptions o = {.rows = c->pass,
                        .longest = c->shape.context,
                        .threads = c->threads,
                        .isa = c->isa,
                        .pool = i ? t->networks[0].pool : NULL,
                        .wanted_head = t->target.head,
                        .wanted_panels = i ? t->networks[0].head_panels[HEAD_WANTED] : NULL,
                        .wanted_width = c->teacher ? c->teacher->model->shape.width : 0};
    bool ok;
    if (c->adapter) {
        AdapterPart part = {.kind = c->adapter->kind,
                            .head = i,
                            .target = c->adapter->model,
                            .target_head = t->target.head,
                            .forwards = c->adapter->forwards,
                            .target_embedding = t->target.embedding};
        ok = network_open_adapter(n, &part, &o, e);
        if (ok) target_start(&t->target, n, c->seed);
    } else {
        ok = network_open(n, &c->shape, &o, e);
        if (ok && c->start) ok = parameters_load(&n->parameters, &c->shape, c->start, n->weights, e);
        else if (ok) parameters_start(&n->parameters, &c->shape, c->seed, n->weights);
    }
    t->count += ok;
    return ok && optimizer_open(&t->optimizers[i], &c->optimizer, n, e);
}

static bool open_networks(Trainer *t, Error *e) {
    const TargetChoice *a = t->config.adapter, *frozen = a ? a : t->config.teacher;
    int count = a ? a->kind.heads : 1;
    if (a && !adapter_check(&a->kind, a->model, "the adapter to train", e)) return false;
    if (frozen) {
        TargetChoice choice = *frozen;
        if (a && a->kind.vocab) {
            choice.draft_ids = t->draft_ids = mem_new((size_t)a->kind.vocab, sizeof *t->draft_ids);
            corpus_commonest(t->corpus, a->model->shape.vocab, t->draft_ids, a->kind.vocab);
        }
        if (!target_open(&t->target, &choice, a != NULL, t->config.pass, e) ||
            !target_keep(&t->target, t->corpus->count, t->config.keep, e))
            return false;
    }
    for (int i = 0; i < count; i++)
        if (!open_network(t, i, e)) return false;
    return true;
}

bool trainer_open(Trainer *t, const TrainConfig *c, const Corpus *corpus, Error *e) {
    *t = (Trainer){.config = *c, .corpus = corpus};
    bool ok = shape_check(&c->shape, "the model to train", e) && trainer_check_config(c, e) &&
              check_corpus(c, corpus, e) && open_networks(t, e) && open_feeds(t, e);
    if (!ok) {
        trainer_close(t);
        return false;
    }
    // Skips the steps that another training has done: the feed continues where it stopped.
    for (; t->step < c->optimizer.begun; t->step++)
        for (int done = 0; done < c->batch; done += c->pass)
            feed_fill(&t->feed, c->pass, c->shape.context, t->tokens, t->targets, t->start, t->places);
    trainer_check(t);
    return true;
}

void trainer_close(Trainer *t) {
    feed_close(&t->feed);
    feed_close(&t->held_out);
    for (int i = ADAPTER_HEADS_MAX - 1; i >= 0; i--) { // the first owns the threads
        optimizer_close(&t->optimizers[i]);
        network_close(&t->networks[i]);
    }
    target_close(&t->target);
    MEM_FREE(t->draft_ids, t->tokens, t->targets, t->start, t->places, t->masked, t->masked_start);
    *t = (Trainer){0};
}

size_t trainer_parameters(const Trainer *t) {
    size_t sum = 0;
    for (int i = 0; i < t->count; i++) sum += t->networks[i].parameters.total;
    return sum;
}

// --- a pass ----------------------------------------------------------------------------------------------

int trainer_parts(const Trainer *t) { return t->count + t->networks[0].part_count - 1; }

// Fills *b with the batch of network i. Text is its own target.
static void batch_of(Trainer *t, int i, int rows, Batch *b) {
    bool masked = t->config.masks > 0;
    *b = (Batch){.tokens = masked ? t->masked : t->tokens,
                 .targets = t->targets,
                 .start = masked ? t->masked_start : t->start,
                 .rows = rows,
                 .wanted = t->target.states};
    if (!t->config.adapter) return;
    target_batch(&t->target, i, t->tokens, t->start, rows, t->targets, b);
    if (!masked) return;
    b->tokens = t->masked;
    b->text = t->tokens;
    b->blocks = t->masked_start;
}

// Of network or part i.
static double weight_of(const Trainer *t, int i) {
    if (t->networks[0].part_count > 1) return part_weight(&t->networks[0], i);
    return t->config.adapter ? target_weight(&t->target, i) : 1;
}

// A parallel draft (PARD) reads text and, behind it, masks where the next tokens would be: as in use, each
// row learns the token behind its own place. The text goes on as a document of its own.
//
//      text     a b c d e f g h i j        learns    b c d e f g h i j k
//      read     a b c m m | f g m m | ..
//
// A block is a token and masks, and the first one of a document is of any length up to that.
static void mask_rows(Trainer *t, const Feed *f, int rows) {
    const TrainConfig *c = &t->config;
    uint64_t place = (uint64_t)f->epoch << 40 ^ (uint64_t)f->document << 16 ^ (uint64_t)f->offset;
    Random r = {.seed = c->seed, .stream = STREAM_MASKS + (place << 8)};
    uint32_t longest = (uint32_t)(c->shape.context > c->masks + 1 ? c->shape.context - c->masks : 1);
    for (int i = 0, begin = 0, mask = 0, end = 0; i < rows; i++) {
        if (i == end || t->start[i] == i) {
            begin = i;
            bool block = c->adapter, first = block && t->start[i] == i;
            mask = i + 1 + (block ? 0 : (int)random_below(&r, longest));
            end = mask + (first ? (int)random_below(&r, (uint32_t)c->masks + 1) : c->masks);
        }
        t->masked[i] = i < mask ? t->tokens[i] : c->shape.mask_token;
        t->masked_start[i] = begin;
    }
}

static bool next_pass(Trainer *t, Feed *f, int rows) {
    if (!progress_say(&t->config.progress, NULL, 0, &t->failure)) return false;
    feed_fill(f, rows, t->config.shape.context, t->tokens, t->targets, t->start, t->places);
    if (t->config.masks) mask_rows(t, f, rows);
    return !t->target.states || target_run(&t->target, t->tokens, t->start, t->places, rows, &t->failure);
}

// Sums over the passes of a batch, or over the held-out rows.
typedef struct Sums {
    Part parts[PARTS_MAX];
} Sums;

// Runs all networks on a pass, and adds it to the sums. Network i's parts count from there: only one network
// alone has several.
static void run_pass(Trainer *t, int rows, bool learn, Sums *s) {
    for (int i = 0; i < t->count; i++) {
        Network *n = &t->networks[i];
        Batch b;
        batch_of(t, i, rows, &b);
        if (learn) network_learn(n, &b, (float)(weight_of(t, i) / t->config.batch));
        else network_loss(n, &b);
        for (int f = 0; f < n->part_count; f++) {
            s->parts[i + f].loss += n->parts[f].loss;
            s->parts[i + f].learned += n->parts[f].learned;
            s->parts[i + f].agreed += n->parts[f].agreed;
        }
    }
}

static double mean_loss(const Trainer *t, const Sums *s) {
    double sum = 0, weights = 0;
    for (int i = 0; i < trainer_parts(t); i++) {
        sum += weight_of(t, i) * s->parts[i].loss / (s->parts[i].learned ? s->parts[i].learned : 1);
        weights += weight_of(t, i);
    }
    return sum / weights;
}

TrainedStep trainer_step(Trainer *t) {
    const TrainConfig *c = &t->config;
    Sums sums = {0};
    double squares = 0, rate = optimizer_rate(&c->optimizer, t->step + 1);
    Feed before = t->feed;
    for (int done = 0; done < c->batch; done += c->pass) {
        if (!next_pass(t, &t->feed, c->pass)) {
            feed_seek(&t->feed, before.epoch, before.document, before.offset);
            return (TrainedStep){.loss = NAN};
        }
        run_pass(t, c->pass, true, &sums);
    }
    t->step++;
    for (int i = 0; i < t->count; i++) {
        double length = optimizer_step(&t->optimizers[i], &t->networks[i], t->step);
        squares += length * length;
    }
    t->loss = mean_loss(t, &sums);
    trainer_check(t);
    return (TrainedStep){t->loss, sqrt(squares), rate};
}

double trainer_held_out(Trainer *t) {
    const TrainConfig *c = &t->config;
    size_t rows = t->held_out.rows, most = (size_t)c->held_out_rows;
    Sums sums = {0};
    if (!t->held_out.count) return NAN;
    if (rows > most) rows = most;
    feed_seek(&t->held_out, 0, 0, 0);
    for (size_t done = 0; done < rows; done += (size_t)c->pass) {
        int n = rows - done < (size_t)c->pass ? (int)(rows - done) : c->pass;
        if (!next_pass(t, &t->held_out, n)) return NAN;
        run_pass(t, n, false, &sums);
    }
    for (int i = 0; i < trainer_parts(t); i++)
        t->agreement[i] = sums.parts[i].learned ? (double)sums.parts[i].agreed / sums.parts[i].learned : NAN;
    return mean_loss(t, &sums);
}
