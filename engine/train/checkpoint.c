// Writing and reading of a run's state. A file is read only after everything in it has been checked: its
// identity is the run's, every tensor has the expected type and size, and the feed has the place it names.
#include "engine/train/trainer.h"

#include "engine/base/memory.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "engine/model/safetensors.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS = 4, NAME = TENSOR_NAME + 16 };

// All settings that the steps up to this one depend on; %a prints exact numbers.
static void identity_text(const Trainer *t, int64_t step, const char *corpus, Text *out) {
    const TrainConfig *c = &t->config;
    const Shape *s = &c->shape;
    OptimizerOptions open = c->optimizer;
    const OptimizerOptions *o = &open;
    if (optimizer_is_open(o, step)) open.steps = 0, open.cooldown = open.last_rate = 0;
    text_printf(out, "shape %d %d %d %d %d %d %d %d %a %a\n", s->layers, s->width, s->heads, s->kv_heads,
                s->head_dim, s->mlp_width, s->vocab, s->context, (double)s->norm_epsilon, s->rope.theta);
    text_printf(out, "optimizer %d %d %a %a %a %a %a %a %a\n", o->steps, o->warmup, o->rate, o->last_rate,
                o->beta1, o->beta2, o->epsilon, o->weight_decay, o->clip);
    text_printf(out, "kind %d schedule %d %a decays %d momentum %a embedding %a\n", (int)o->kind,
                (int)o->schedule, o->cooldown, (int)o->decays, o->momentum, o->embedding_rate);
    text_printf(out, "batch %d %d held out %a seed %llu kernels %s corpus %s\n", c->batch, c->pass,
                c->held_out, (unsigned long long)c->seed, t->networks[0].kernels->name, corpus);
    if (o->begun) text_printf(out, "begun %d\n", o->begun);
    if (c->masks) text_printf(out, "masks %d of %d\n", c->masks, s->mask_token);
    if (c->start) text_printf(out, "start %s\n", c->start_name);
    if (c->teacher) text_printf(out, "teacher %s\n", c->teacher->name);
    if (!c->adapter) return;
    const AdapterKind *k = &c->adapter->kind;
    text_printf(out, "adapter %s exit %d heads %d key heads %d target %s\n", adapter_variant_name(k->variant),
                k->exit_layer, k->heads, k->kv_heads, c->adapter->name);
    if (k->variant == ADAPTER_EAGLE3 && k->mask) text_printf(out, "mask %d layers %d ", k->mask, k->layers);
    if (k->variant == ADAPTER_DFLASH)
        text_printf(out, "layers %d block %d rank %d confidence %d ", k->layers, k->block.rows, k->block.rank,
                    (int)k->block.confidence);
    if (k->variant < ADAPTER_EAGLE) return;
    const Captures read = adapter_captures(k, s);
    text_printf(out, "forwards %d reads", c->adapter->forwards);
    for (int i = 0; i < read.count; i++) text_printf(out, " %d", read.layers[i]);
    if (k->vocab) text_printf(out, " vocabulary %d", k->vocab);
    if (k->normed_heads) text_puts(out, " normed heads");
    if (k->recycles_normed) text_puts(out, " recycles normed");
}

static bool identity_of(const Trainer *t, int64_t step, char out[SHA256_TEXT], Error *e) {
    char ids[SHA256_TEXT], ends[SHA256_TEXT], both[2 * SHA256_TEXT];
    LOCAL_TEXT text = {0};
    const Corpus *c = t->corpus;
    if (!sha256_bytes(c->ids, c->count * sizeof *c->ids, ids, e) ||
        !sha256_bytes(c->ends, c->documents * sizeof *c->ends, ends, e))
        return false;
    snprintf(both, sizeof both, "%s%s", ids, ends);
    identity_text(t, step, both, &text);
    return sha256_bytes(text.data, text.length, out, e);
}

// One of the three arrays, and the suffix of a parameter's name in it.
typedef struct Moments {
    const char *suffix;
    float *numbers;
} Moments;

enum { ARRAYS = 3 };

static void arrays_of(const Trainer *t, int network, Moments out[ARRAYS]) {
    out[0] = (Moments){"", t->networks[network].weights};
    out[1] = (Moments){".mean", t->optimizers[network].mean};
    out[2] = (Moments){".square", t->optimizers[network].square};
}

static TensorOut parameter_out(const Parameter *p, const Moments *m, char *name) {
    snprintf(name, NAME, "%s%s", p->name, m->suffix);
    return (TensorOut){.name = name,
                       .dtype = "F32",
                       .rows = p->vector ? 0 : (size_t)p->rows,
                       .columns = (size_t)p->columns,
                       .data = m->numbers + p->at,
                       .bytes = parameter_size(p) * sizeof(float)};
}

// The number of arrays that a parameter has.
static int arrays_used(const Trainer *t, int network, const Parameter *x) {
    bool muon = optimizer_is_muon(&t->optimizers[network], &t->networks[network].parameters, x);
    return muon ? ARRAYS - 1 : ARRAYS;
}

// All networks' numbers; the names of the heads' parameters have the head's number. Returns their count.
static size_t numbers_out(const Trainer *t, TensorOut *out, char (*names)[NAME]) {
    size_t count = 0;
    for (int n = 0; n < t->count; n++) {
        const Parameters *p = &t->networks[n].parameters;
        Moments arrays[ARRAYS];
        arrays_of(t, n, arrays);
        for (int i = 0; i < p->count; i++)
            for (int a = 0; a < arrays_used(t, n, &p->list[i]); a++, count++)
                out[count] = parameter_out(&p->list[i], &arrays[a], names[count]);
    }
    return count;
}

bool checkpoint_write(const Trainer *t, const char *path, Error *e) {
    const int64_t progress[PROGRESS] = {t->step, (int64_t)t->feed.epoch, (int64_t)t->feed.document,
                                        (int64_t)t->feed.offset};
    char identity[SHA256_TEXT];
    size_t most = 3;
    for (int i = 0; i < t->count; i++) most += ARRAYS * (size_t)t->networks[i].parameters.count;
    if (!identity_of(t, t->step, identity, e)) return false;
    LOCAL_MEMORY TensorOut *out = mem_new(most, sizeof *out);
    LOCAL_MEMORY char(*names)[NAME] = mem_new(most, NAME);
    size_t count = numbers_out(t, out, names);
    assert(count + 3 <= most);
    out[count++] = (TensorOut){"progress", "I64", 0, PROGRESS, progress, sizeof progress};
    out[count++] = (TensorOut){"loss", "F64", 0, 1, &t->loss, sizeof t->loss};
    out[count++] = (TensorOut){"identity", "U8", 0, SHA256_TEXT - 1, identity, SHA256_TEXT - 1};
    return safetensors_write(path, out, count, e);
}

// --- reading ---------------------------------------------------------------------------------------------

typedef struct CheckpointReading {
    const unsigned char *data;
    Safetensors header;
    const char *path;
    Error *e;
} CheckpointReading;

// The bytes of a tensor, which must be as many as wanted.
static const unsigned char *bytes_of(const CheckpointReading *r, const char *name, const char *dtype,
                                     size_t bytes) {
    const StoredTensor *t = safetensors_find(&r->header, name);
    if (t && strcmp(t->dtype, dtype) == 0 && t->end - t->begin == bytes) return r->data + t->begin;
    error_input(r->e, "the checkpoint '%s' has no '%s' of %zu bytes of %s: remove it to start again", r->path,
                name, bytes, dtype);
    return NULL;
}

static bool same_run(const CheckpointReading *r, const Trainer *t) {
    char identity[SHA256_TEXT];
    int64_t step;
    const unsigned char *there = bytes_of(r, "identity", "U8", SHA256_TEXT - 1);
    const unsigned char *progress = bytes_of(r, "progress", "I64", PROGRESS * sizeof step);
    if (!there || !progress) return false;
    memcpy(&step, progress, sizeof step);
    if (!identity_of(t, step, identity, r->e)) return false;
    return memcmp(there, identity, SHA256_TEXT - 1) == 0 ||
           error_input(
               r->e,
               "the checkpoint '%s' is of a run with another configuration, text, tokenizer or kernel "
               "set: put them back, or remove it to start again",
               r->path);
}

// copy: false looks all tensors up, true copies them.
static bool read_network(const CheckpointReading *r, Trainer *t, int network, bool copy) {
    const Parameters *p = &t->networks[network].parameters;
    Moments arrays[ARRAYS];
    char name[NAME];
    arrays_of(t, network, arrays);
    for (int i = 0; i < p->count; i++)
        for (int a = 0; a < arrays_used(t, network, &p->list[i]); a++) {
            TensorOut x = parameter_out(&p->list[i], &arrays[a], name);
            const unsigned char *from = bytes_of(r, name, "F32", x.bytes);
            if (!from) return false;
            if (copy) memcpy(arrays[a].numbers + p->list[i].at, from, x.bytes);
        }
    return true;
}

static bool read_progress(const CheckpointReading *r, Trainer *t) {
    int64_t p[PROGRESS];
    const unsigned char *from = bytes_of(r, "progress", "I64", sizeof p);
    const unsigned char *loss = bytes_of(r, "loss", "F64", sizeof t->loss);
    if (!from || !loss) return false;
    memcpy(p, from, sizeof p);
    if (p[0] < 0 || p[0] > t->config.optimizer.steps ||
        !feed_seek(&t->feed, (uint64_t)p[1], (size_t)p[2], (size_t)p[3]))
        return error_input(
            r->e, "the checkpoint '%s' names a place that this text doesn't have: remove it to start again",
            r->path);
    t->step = (int)p[0];
    memcpy(&t->loss, loss, sizeof t->loss);
    return true;
}

bool checkpoint_read(Trainer *t, const char *path, Error *e) {
    LOCAL(file_unmap) FileView view = {0};
    CheckpointReading r = {.path = path, .e = e};
    if (!file_map(path, &view, e)) return false;
    r.data = view.data;
    bool ok = safetensors_parse(view.data, view.size, path, &r.header, e);
    ok = ok && same_run(&r, t);
    for (int i = 0; ok && i < t->count; i++) ok = read_network(&r, t, i, false);
    ok = ok && read_progress(&r, t);
    for (int i = 0; ok && i < t->count; i++) ok = read_network(&r, t, i, true);
    safetensors_release(&r.header);
    return ok;
}

bool checkpoint_is(const char *path) {
    LOCAL(file_unmap) FileView view = {0};
    LOCAL(safetensors_release) Safetensors header = {0};
    if (!file_map(path, &view, NULL) || !safetensors_parse(view.data, view.size, path, &header, NULL))
        return false;
    const StoredTensor *progress = safetensors_find(&header, "progress");
    return progress && strcmp(progress->dtype, "I64") == 0 && safetensors_find(&header, "identity");
}
