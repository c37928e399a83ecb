// Within a file, tensors of four bytes per element come first, so that all tensors begin at multiples of
// their element's size: tensors of codes have even sizes. Invariant: every tensor is in one of the shards,
// whose headers tile their data.
#include "engine/model/make/weights_out.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { BUFFER = 1 << 16, PROGRESS_STEPS = 256, PIECE = 4 << 20, THREADS_MOST = 16 };
static const size_t SHARD_BYTES = 5000000000u;

// A shard's file, written in pieces that begin at multiples of their size: Linux then keeps it in huge pages,
// and the weights of one token are read some 5% faster (results/speed.md).
typedef struct Pieces {
    FilePart *part;
    unsigned char *piece; // (PIECE)
    size_t used;
} Pieces;

bool tensor_plan(const WeightSpec *s, Dtype dtype, TensorPlan *out) {
    if (!s->name[0] || s->first_row || (s->planes && s->expert)) return false;
    size_t rows = (size_t)s->stored_rows, columns = (size_t)s->columns;
    bool turned = s->form == STORED_TRANSPOSED;
    *out = (TensorPlan){.rows = s->vector ? 1
                                : turned  ? columns
                                          : rows,
                        .columns = s->vector ? rows * columns
                                   : turned  ? rows
                                             : columns,
                        .planes = (size_t)s->planes,
                        .vector = s->vector,
                        .dtype = dtype};
    memcpy(out->name, s->name, sizeof out->name);
    return true;
}

static size_t size_of(const TensorPlan *t) { return t->bits ? 1 : dtype_size(t->dtype); }
static size_t elements_of(const TensorPlan *t) { return (t->planes ? t->planes : 1) * t->rows * t->columns; }
size_t plan_bytes(const TensorPlan *t) { return elements_of(t) * size_of(t); }
static bool is_wide(const TensorPlan *t) { return size_of(t) == sizeof(float); }

static void weights_out_check(const WeightsOut *w) {
    UNUSED size_t bytes = 0;
    for (int i = 0; i < w->count; i++) {
        assert(w->tensors[i].shard >= (i ? w->tensors[i - 1].shard : 0) && w->tensors[i].shard < w->shards);
        bytes += plan_bytes(&w->tensors[i]);
    }
    assert(bytes == w->bytes && w->written <= w->bytes);
}

static void choose_shards(WeightsOut *w) {
    size_t at = 0, most = w->shard_bytes ? w->shard_bytes : SHARD_BYTES;
    w->shards = 0;
    w->bytes = w->written = 0;
    for (int i = 0; i < w->count; i++) {
        size_t bytes = plan_bytes(&w->tensors[i]);
        if (at && at + bytes > most) {
            w->shards++;
            at = 0;
        }
        w->tensors[i].shard = w->shards;
        at += bytes;
        w->bytes += bytes;
    }
    w->shards++;
    weights_out_check(w);
}

// The tensor after `i` in a shard's file, -1 being its start; count after the last.
static int next(const WeightsOut *w, int shard, int i) {
    bool wide = i < 0 || is_wide(&w->tensors[i]);
    for (i++; i < w->count || wide; i++) {
        if (i == w->count) {
            wide = false;
            i = 0;
        }
        if (w->tensors[i].shard == shard && is_wide(&w->tensors[i]) == wide) return i;
    }
    return w->count;
}

static bool flush(Pieces *p) {
    bool ok = file_part_write(p->part, p->piece, p->used);
    p->used = 0;
    return ok;
}

static bool put(Pieces *p, const void *data, size_t n) {
    const unsigned char *from = data;
    while (n > 0) {
        size_t part = PIECE - p->used < n ? PIECE - p->used : n;
        memcpy(p->piece + p->used, from, part);
        p->used += part;
        from += part;
        n -= part;
        if (p->used == PIECE && !flush(p)) return false;
    }
    return true;
}

// Threads that write a shard each, until none are left or one has failed.
typedef struct Crew {
    WeightsOut *w;
    const char *dir;
    pthread_mutex_t lock; // of the fields below, and of w->written
    int next;             // shard
    bool ok;
    Error *e;
} Crew;

static bool count_written(Crew *c, size_t bytes, bool show, Error *e) {
    WeightsOut *w = c->w;
    pthread_mutex_lock(&c->lock);
    w->written += bytes;
    bool ok =
        !show || progress_say(&w->progress, "writing weights", (double)w->written / (double)w->bytes, e);
    pthread_mutex_unlock(&c->lock);
    return ok;
}

static bool write_tensor(Crew *c, int tensor, Pieces *p, unsigned char *buffer, Error *e) {
    const WeightsOut *w = c->w;
    const TensorPlan *t = &w->tensors[tensor];
    size_t elements = elements_of(t), step = BUFFER / 4, size = size_of(t);
    for (size_t done = 0; done < elements; done += step) {
        size_t n = elements - done < step ? elements - done : step;
        w->fill(w->source, tensor, done, n, buffer);
        if (!put(p, buffer, n * size)) return false;
        if (!count_written(c, n * size, done % (step * PROGRESS_STEPS) == 0, e)) return false;
    }
    return true;
}

static void header_text(const WeightsOut *w, int shard, Text *t) {
    size_t at = 0;
    safetensors_begin(t);
    for (int i = next(w, shard, -1); i < w->count; i = next(w, shard, i)) {
        const TensorPlan *x = &w->tensors[i];
        assert(at % size_of(x) == 0);
        const char *dtype = x->bits == 8 ? "I8" : x->bits == 4 ? "U8" : dtype_name(x->dtype);
        safetensors_entry(t, x->name, dtype, x->planes, x->vector ? 0 : x->rows, x->columns, at,
                          plan_bytes(x));
        at += plan_bytes(x);
    }
    safetensors_end(t);
}

static bool write_shard_to(Crew *c, int shard, FilePart *part, Error *e) {
    WeightsOut *w = c->w;
    LOCAL_TEXT header = {0};
    LOCAL_MEMORY unsigned char *buffer = mem_new(BUFFER, 1);
    Pieces p = {.part = part, .piece = mem_try(PIECE, 1)};
    if (!p.piece) // the directory is cleared, as after any failure
        return error_system(e, "out of memory for writing weights: %d bytes", PIECE);
    header_text(w, shard, &header);
    bool ok = put(&p, header.data, header.length);
    for (int i = next(w, shard, -1); ok && i < w->count; i = next(w, shard, i))
        ok = write_tensor(c, i, &p, buffer, e);
    ok = ok && flush(&p);
    if (!ok && e->kind != ERROR_INTERRUPTED) error_system(e, "cannot write weights: %s", strerror(errno));
    mem_free(p.piece);
    return ok;
}

static void shard_name(const WeightsOut *w, int shard, char out[64]) {
    if (w->shards == 1) snprintf(out, 64, "model.safetensors");
    else snprintf(out, 64, "model-%05d-of-%05d.safetensors", shard + 1, w->shards);
}

static bool write_shard(Crew *c, int shard, Error *e) {
    char name[64], path[MADE_MAX_PATH];
    FilePart part;
    shard_name(c->w, shard, name);
    snprintf(path, sizeof path, "%s/%s", c->dir, name);
    if (!file_part_open(&part, path, e)) return false;
    if (write_shard_to(c, shard, &part, e)) return file_part_finish(&part, path, e);
    file_part_drop(&part);
    return error_within(e, "'%s'", path);
}

static bool write_index(const WeightsOut *w, const char *dir, Error *e) {
    json_t *map = json_object();
    for (int i = 0; i < w->count; i++) {
        char name[64];
        shard_name(w, w->tensors[i].shard, name);
        json_object_set_new(map, w->tensors[i].name, json_string(name));
    }
    json_auto_t *root =
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)w->bytes, "weight_map", map);
    return made_json(dir, "model.safetensors.index.json", root, e);
}

// The next shard to write, or -1.
static int take_shard(Crew *c) {
    pthread_mutex_lock(&c->lock);
    int shard = c->ok && c->next < c->w->shards ? c->next++ : -1;
    pthread_mutex_unlock(&c->lock);
    return shard;
}

static void *write_shards(void *crew) {
    Crew *c = crew;
    Error e = {0};
    for (int shard = take_shard(c); shard >= 0; shard = take_shard(c)) {
        if (write_shard(c, shard, &e)) continue;
        pthread_mutex_lock(&c->lock);
        if (c->ok && c->e) *c->e = e; // the first error
        c->ok = false;
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

// If a thread can't be started, the others do its work.
static bool write_by_threads(WeightsOut *w, const char *dir, Error *e) {
    Crew c = {.w = w, .dir = dir, .lock = PTHREAD_MUTEX_INITIALIZER, .ok = true, .e = e};
    pthread_t threads[THREADS_MOST];
    int most = w->threads < w->shards ? w->threads : w->shards, started = 0;
    while (started < most - 1 && started < THREADS_MOST &&
           pthread_create(&threads[started], NULL, write_shards, &c) == 0)
        started++;
    write_shards(&c);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return c.ok;
}

bool weights_out(WeightsOut *w, const char *dir, Error *e) {
    choose_shards(w);
    LOCAL_MEMORY char *inside = file_path(dir, "");
    bool ok = file_has_room(inside, (double)w->bytes, "the weights", e);
    ok = ok && write_by_threads(w, dir, e) && (w->shards == 1 || write_index(w, dir, e));
    weights_out_check(w);
    assert(!ok || w->written == w->bytes);
    return ok;
}

bool weights_made(WeightsOut *w, const Made *m, const json_t *config, const char *tokenizer, Error *e) {
    if (!made_begin(m, config, e)) return false;
    if ((!tokenizer || made_copy_tokenizer(tokenizer, m->dir, e)) && weights_out(w, m->dir, e) &&
        made_finish(m, e))
        return true;
    made_abandon(m);
    return false;
}
