// Binds weights that files store as codes and scales: those of quantise.h, and the blocks of GGUF files.
#include "engine/base/memory.h"
#include "engine/base/system.h"
#include "engine/model/binding.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool scales_name(char out[TENSOR_NAME], const char *weight) {
    int n = snprintf(out, TENSOR_NAME, "%s.scales", weight);
    return n > 0 && n < TENSOR_NAME;
}

// A scale that is 0, infinite or a NaN wasn't written by any quantiser.
static bool check_scales(const Binding *b, const Found *f, Error *e) {
    const StoredTensor *t = f->t;
    size_t count = (t->end - t->begin) / sizeof(uint16_t), columns = (size_t)t->dims[1];
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, found_data(f) + i * sizeof half, sizeof half);
        const char *what = !(half & 0x7fffu)             ? "0"
                           : (half & 0x7c00u) != 0x7c00u ? NULL
                           : half & 0x3ffu               ? "a NaN"
                                                         : "an infinity";
        if (what)
            return error_input(
                e,
                "tensor '%s' in '%s/%s' holds %s at row %zu, column %zu, which is not a scale: "
                "quantise the model again",
                t->name, b->dir, f->shard->name, what, i / columns, i % columns);
    }
    return true;
}

bool codes_bind(const Binding *b, const WeightSpec *s, const Found *f, Error *e) {
    Found scales;
    const StoredTensor *t = f->t;
    char name[TENSOR_NAME];
    int bits = strcmp(t->dtype, "I8") == 0 ? 8 : 4, group = b->m->group;
    if (t->rank != 2 || t->dims[0] != s->rows || t->dims[1] != (int64_t)s->columns * bits / 8 ||
        s->columns % group)
        return error_input(
            e,
            "tensor '%s' in '%s/%s' isn't codes of %d bits for (%d, %d) numbers in groups of %d, "
            "which config.json needs: are both of the same model?",
            t->name, b->dir, f->shard->name, bits, s->rows, s->columns, group);
    if (!scales_name(name, s->name)) return error_input(e, "the name of tensor '%s' is too long", s->name);
    if (!binding_find(b, name, &scales, e)) return false;
    const StoredTensor *x = scales.t;
    if (strcmp(x->dtype, "F16") != 0 || x->rank != 2 || x->dims[0] != s->rows ||
        x->dims[1] != s->columns / group || x->begin % sizeof(uint16_t))
        return error_input(e, "tensor '%s' in '%s/%s' must hold (%d, %d) scales in F16, at an even byte",
                           name, b->dir, scales.shard->name, s->rows, s->columns / group);
    *binding_place(b, s) = (Tensor){.data = found_data(f),
                                    .dtype = DTYPE_BF16,
                                    .rows = s->rows,
                                    .columns = s->columns,
                                    .codes = {bits, group, SCALES_F16, found_data(&scales)}};
    return check_scales(b, &scales, e);
}

// --- blocks

enum { THREADS_MOST = 16 };
static const size_t BYTES_A_THREAD = 1 << 20; // of blocks: below that a thread costs more than it saves

// Rows of a weight that a thread unpacks.
typedef struct Rows {
    const Binding *b;
    const WeightSpec *s;
    const BlockFormat *format;
    const unsigned char *blocks;
    const char *place;                      // the file, for messages
    unsigned char *codes, *scales, *values; // values, exact, in f32; NULL: they stay codes
    size_t first, end;                      // rows
    size_t bad_row, bad_group;              // the first whose scale isn't finite; bad_row is `end` if none is
    unsigned char *one;                     // room for codes and scales of a row of values
    pthread_t thread;
} Rows;

static void *unpack_rows(void *rows) {
    Rows *r = rows;
    int columns = r->s->columns;
    Tensor t = {.dtype = DTYPE_BF16, .rows = 1, .columns = columns, .codes = r->format->codes};
    size_t block = (size_t)columns / (size_t)r->format->numbers * (size_t)r->format->bytes;
    size_t code_bytes = tensor_row_bytes(&t), scale_bytes = tensor_row_scale_bytes(&t);
    for (r->bad_row = r->first; r->bad_row < r->end; r->bad_row++) {
        size_t row = r->bad_row;
        unsigned char *codes = r->values ? r->one : r->codes + row * code_bytes;
        unsigned char *scales = r->values ? r->one + code_bytes : r->scales + row * scale_bytes;
        block_row(r->format, r->blocks + binding_row(r->b, r->s, row) * block, columns, codes, scales);
        t.data = codes;
        t.codes.scales = scales;
        r->bad_group = tensor_bad_scale(&t);
        if (r->bad_group < (size_t)(columns / t.codes.group)) break;
        if (r->values) tensor_exact_row(&t, 0, (float *)(void *)r->values + row * (size_t)columns);
    }
    return NULL;
}
// Unpacks the rows in `count` shares. If a thread can't be started, this one does its work.
static void unpack_shares(Rows *shares, int count) {
    bool started[THREADS_MOST] = {false};
    for (int i = 1; i < count; i++)
        started[i] = pthread_create(&shares[i].thread, NULL, unpack_rows, &shares[i]) == 0;
    for (int i = 0; i < count; i++)
        if (!started[i]) unpack_rows(&shares[i]);
    for (int i = 1; i < count; i++)
        if (started[i]) pthread_join(shares[i].thread, NULL);
}

static bool unpack(const Rows *all, Error *e) {
    Rows shares[THREADS_MOST];
    Tensor row = {.columns = all->s->columns, .codes = all->format->codes};
    size_t one = tensor_row_bytes(&row) + tensor_row_scale_bytes(&row);
    size_t most = 1 + all->end * tensor_row_bytes(&row) / BYTES_A_THREAD;
    if (most > THREADS_MOST) most = THREADS_MOST;
    int count = most > 1 ? system_processors((int)sysconf(_SC_NPROCESSORS_ONLN)) : 1;
    if (count > (int)most) count = (int)most;
    for (int i = 0; i < count; i++) {
        shares[i] = *all;
        shares[i].first = all->end * (size_t)i / (size_t)count;
        shares[i].end = all->end * (size_t)(i + 1) / (size_t)count;
        if (all->values) shares[i].one = mem_new(one, 1);
    }
    unpack_shares(shares, count);
    const Rows *bad = shares;
    while (bad < shares + count && bad->bad_row == bad->end) bad++;
    for (int i = 0; i < count; i++) mem_free(shares[i].one);
    return bad == shares + count ||
           error_input(e,
                       "tensor '%s' in '%s/%s' has a scale that isn't finite, at row %zu, group %zu: fetch "
                       "the model again",
                       all->s->name, all->b->dir, all->place, bad->bad_row, bad->bad_group);
}

bool blocks_bind(const Binding *b, const WeightSpec *s, const BlockFormat *format, const Found *f, Error *e) {
    Tensor row = {.columns = s->columns, .codes = format->codes}, *out = binding_place(b, s);
    bool valued = b->w->exact;
    size_t rows = (size_t)s->rows;
    Rows all = {
        .b = b, .s = s, .format = format, .blocks = found_data(f), .place = f->shard->name, .end = rows};
    if (valued) all.values = binding_take(b, s, rows, (size_t)s->columns * sizeof(float), e);
    else all.codes = binding_take(b, s, rows, tensor_row_bytes(&row), e);
    if (all.codes) all.scales = binding_take(b, s, rows, tensor_row_scale_bytes(&row), e);
    if (!(valued ? all.values : all.scales) || !unpack(&all, e)) return false;
    *out = (Tensor){.data = valued ? all.values : all.codes,
                    .dtype = valued ? DTYPE_F32 : DTYPE_BF16,
                    .rows = s->rows,
                    .columns = s->columns};
    if (valued) return true;
    out->codes = format->codes;
    out->codes.scales = all.scales;
    return true;
}
