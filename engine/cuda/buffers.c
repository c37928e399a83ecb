// All of an instance's memory but weights. The same list of blocks is walked twice: first to add up sizes, so
// that fit.c can decide whether the model fits, then to allocate.
#include "engine/cuda/fast.h"

#include "engine/base/memory.h"
#include "engine/cuda/instance.h"
#include "engine/cuda/sequence.h"
#include "engine/model/follow.h"

#include <assert.h>
#include <string.h>

// Slots of a step: an expert's begin at a multiple of 8.
static int cuda_slots(const Cuda *c) {
    const Experts *x = &c->model->shape.experts;
    int choices = cuda_rows_limit(c) * x->chosen;
    return choices + 7 * (choices < x->count ? choices : x->count);
}

// One role's activations for readers of one form. Padding is never written and stays zero.
static bool take_role(Cuda *c, Role role, int columns, Form form, Error *e) {
    Activations *a = &c->roles[role][form];
    size_t rows = role >= ROLE_SLOTS ? (size_t)cuda_slots(c) : (size_t)cuda_rows_limit(c);
    *a = (Activations){.pitch = round_up(columns, form == FORM_PLAIN ? PLAIN_K : PACKED_K),
                       .form = form,
                       .dtype = c->heads.dtype};
    return cuda_take(c, &a->data, rows * (size_t)a->pitch * (form == FORM_PLAIN ? 4 : 2), true,
                     &c->step_bytes, e);
}

static bool reads(const Matrix *m, Form form) { return m->rows > 0 && m->form == form; }

static bool take_roles(Cuda *c, Error *e) {
    const Shape *s = &c->model->shape;
    const int columns[ROLES] = {s->width,
                                shape_q_width(s),
                                s->mlp_width,
                                shape_attention_width(s, 0),
                                shape_fc_width(s),
                                s->block.rank,
                                s->experts.shared_width,
                                s->width,
                                s->experts.width};
    for (Form form = 0; form < FORMS; form++) {
        bool need[ROLES] = {[ROLE_NORMED] = reads(&c->head, form),
                            [ROLE_JOINED] = reads(&c->fc, form),
                            [ROLE_FOLLOWED] = reads(&c->markov, form)};
        for (int i = 0; i < s->layers; i++) {
            const GpuLayer *l = &c->layers[i];
            need[attention_role(s, i)] |= reads(&l->qkv, form);
            need[ROLE_NORMED] |= reads(&l->in, form);
            need[ROLE_MIXED] |= reads(&l->o, form);
            need[ROLE_GATED] |= reads(&l->down, form);
            need[ROLE_NORMED] |=
                reads(&l->router, form) || reads(&l->shared_in, form) || reads(&l->expert_in, form);
            need[ROLE_SHARED] |= reads(&l->shared_down, form);
            need[ROLE_SLOTS] |= reads(&l->expert_in, form);
            need[ROLE_SLOTS_GATED] |= reads(&l->expert_down, form);
        }
        for (Role role = 0; role < ROLES; role++)
            if (need[role] && !take_role(c, role, columns[role], form, e)) return false;
    }
    return true;
}

static void see_parts(const Cuda *c, size_t *most, const Matrix *m) {
    size_t rows = PANEL_ROWS, limit = (size_t)cuda_rows_limit(c); // launches are for powers of two
    while (rows < limit) rows *= 2;
    size_t n = m->splits > 1 ? (size_t)m->splits * rows * (size_t)round_up(m->rows, 16) : 0;
    if (n > *most) *most = n;
}

// Floats that the parts of the largest product take.
static size_t most_parts(const Cuda *c) {
    size_t most = 0;
    see_parts(c, &most, &c->head);
    see_parts(c, &most, &c->fc);
    see_parts(c, &most, &c->markov);
    for (int i = 0; i < c->model->shape.layers; i++) {
        const GpuLayer *w = &c->layers[i];
        const Matrix *const all[] = {&w->qkv,    &w->o,         &w->in,         &w->down,
                                     &w->router, &w->shared_in, &w->shared_down};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) see_parts(c, &most, all[k]);
    }
    return most;
}

// Takes room for the parts of all tiles of a step, up to 64 MB, or two quads' of long contexts; at least one
// tile's.
static bool take_attention(Cuda *c, Error *e) {
    int spans = cuda_spans(c, 0, c->context - 1), groups = spans / GROUP_SPANS + 1;
    size_t most = (size_t)16 << 20,
           quads = 2 * QUAD_TILES * gpu_attention_part(&c->heads, groups + STEP_SPANS);
    if (quads > most) most = quads;
    size_t part = gpu_attention_part(&c->heads, spans), tiles = (size_t)cuda_tiles_limit(c),
           counters = tiles * (size_t)c->heads.heads;
    c->attention_floats = spans == 1 ? 0 : part * tiles < most ? part * tiles : part < most ? most : part;
    return cuda_take(c, &c->attention_parts, c->attention_floats * 4, false, &c->step_bytes, e) &&
           cuda_take(c, &c->attention_done, counters * sizeof(unsigned), true, &c->step_bytes, e);
}

static size_t list_size(int nodes) { return sizeof(RowList) + (size_t)nodes * sizeof(int); }

static size_t moves_size(const Cuda *c) { return sizeof(MoveList) + (size_t)cuda_nodes(c) * sizeof(Move); }

static size_t asks_size(int nodes) { return sizeof(DrawAsks) + (size_t)nodes * sizeof(int); }

static size_t answers_size(int nodes) {
    return (size_t)(nodes + PANEL_ROWS) * sizeof(double) + PANEL_ROWS * sizeof(int);
}

// Takes the head's results, on the card that runs it.
static bool take_head(Cuda *c, Error *e) {
    size_t f = sizeof(float), *t = &c->step_bytes, vocab = (size_t)c->model->shape.vocab;
    size_t width = (size_t)c->model->shape.width, widest = vocab > width ? vocab : width;
    return cuda_take(c, &c->logits, PANEL_ROWS * widest * f, false, t, e) &&
           cuda_take(c, &c->best, PANEL_ROWS * BEST_SLICES * sizeof *c->best, false, t, e) &&
           cuda_take(c, &c->tops, TOPS_SIZE * f, false, t, e) &&
           cuda_take(c, &c->slice_id, (size_t)PANEL_ROWS * TOP_SLICES * TOP_MAX * f, false, t, e) &&
           cuda_take(c, &c->slice_logit, (size_t)PANEL_ROWS * TOP_SLICES * TOP_MAX * f, false, t, e) &&
           cuda_take(c, &c->draw_asks, asks_size(cuda_nodes(c)), false, t, e) &&
           cuda_take(c, &c->draw_answers, answers_size(cuda_nodes(c)), false, t, e) &&
           cuda_take(c, &c->draw_p, vocab * f, false, t, e);
}

// Takes room for the scores of all tiles of a step, up to 256 MB; at least one tile's.
static bool take_scores(Cuda *c, Error *e) {
    const size_t most = (size_t)64 << 20;
    size_t tile = (size_t)c->heads.heads * (size_t)c->context, all = tile * (size_t)cuda_tiles_limit(c);
    c->scores_floats = all < most ? all : tile < most ? most : tile;
    return cuda_take(c, &c->scores, c->scores_floats * 4, false, &c->step_bytes, e);
}

static bool take_given(Cuda *c, Error *e) {
    const Shape *s = &c->model->shape;
    size_t row = (size_t)cuda_nodes(c) * sizeof *c->given, given = row * (size_t)shape_given_width(s);
    return !shape_reads_both(s) ||
           (cuda_take(c, &c->given, given, false, &c->step_bytes, e) &&
            cuda_take(c, &c->tokens, row * (size_t)s->width, false, &c->step_bytes, e) &&
            cuda_take(c, &c->grown_score, row, false, &c->step_bytes, e) &&
            cuda_take(c, &c->grown_above, row, false, &c->step_bytes, e) &&
            (!s->block.rank ||
             cuda_take(c, &c->followed, (size_t)s->block.rank * sizeof(float), false, &c->step_bytes, e)));
}

static bool take_experts(Cuda *c, Error *e) {
    const Shape *s = &c->model->shape;
    const Experts *x = &s->experts;
    size_t rows = (size_t)cuda_rows_limit(c), choices = rows * (size_t)x->chosen * sizeof(float);
    size_t *t = &c->step_bytes;
    if (!x->count) return true;
    return cuda_take(c, &c->experts.logits, rows * (size_t)(x->count + 1) * sizeof(float), false, t, e) &&
           cuda_take(c, &c->experts.weight, choices, false, t, e) &&
           cuda_take(c, &c->experts.expert, choices, false, t, e) &&
           cuda_take(c, &c->experts.slot, choices, false, t, e) &&
           cuda_take(c, &c->experts.slices, (size_t)x->count * sizeof(Slice), false, t, e) &&
           cuda_take(c, &c->experts.outputs, (size_t)cuda_slots(c) * (size_t)s->width * sizeof(float), false,
                     t, e);
}

static bool take_step(Cuda *c, Error *e) {
    bool ok = cuda_take(c, &c->running, cuda_step_size(c), false, &c->step_bytes, e);
    if (c->running) c->given_rows = cuda_given_rows(c, c->running);
    if (c->running) c->foreseen = cuda_foreseen(c, c->running);
    if (c->running) c->step = cuda_step_in(c, c->running);
    return ok;
}

bool cuda_take_buffers(Cuda *c, Error *e) {
    const Shape *s = &c->model->shape;
    size_t nodes = (size_t)cuda_nodes(c), f = sizeof(float), *t = &c->step_bytes;
    size_t head = (size_t)c->heads.pitch * dtype_size(c->heads.dtype), layers = (size_t)(c->to - c->from);
    size_t slots = (size_t)c->sequences * cuda_cache_size(c),
           area = layers * (size_t)s->kv_heads * nodes * head;
    size_t rows = (size_t)cuda_rows_limit(c),
           sums = s->qk_norm ? (size_t)(shape_q_width(s) + 2 * shape_kv_width(s)) : 0;
    size_t pairs = (size_t)(shape_ropes(s) * s->rope.pairs);
    if ((s->norm_place != NORMS_BEFORE || s->experts.count) && sums < (size_t)s->width)
        sums = (size_t)s->width;
    return cuda_take(c, &c->cache_k, slots, false, &c->cache_bytes, e) &&
           cuda_take(c, &c->cache_v, slots, false, &c->cache_bytes, e) &&
           cuda_take(c, &c->step_k, area, false, t, e) && cuda_take(c, &c->step_v, area, false, t, e) &&
           (shape_tokens(s) == s->vocab ||
            cuda_take(c, &c->names, (size_t)s->vocab * sizeof *c->names, false, t, e)) &&
           take_step(c, e) && cuda_take(c, &c->chosen, list_size(PANEL_ROWS), false, t, e) &&
           cuda_take(c, &c->moves, moves_size(c), false, t, e) &&
           cuda_take(c, &c->hidden, nodes * (size_t)s->width * f, false, t, e) &&
           cuda_take(c, &c->q, rows * (size_t)s->heads * head, false, t, e) &&
           (!sums || cuda_take(c, &c->sums, rows * sums * f, false, t, e)) &&
           cuda_take(c, &c->frequency, pairs * sizeof(double), false, t, e) &&
           cuda_take(c, &c->cosine, nodes * pairs * f, false, t, e) &&
           cuda_take(c, &c->sine, nodes * pairs * f, false, t, e) &&
           cuda_take(c, &c->overflow, sizeof *c->overflow, false, t, e) && take_roles(c, e) &&
           cuda_take(c, &c->parts, most_parts(c) * f, false, t, e) &&
           cuda_take(c, &c->done, PANEL_ROWS * sizeof(unsigned), true, t, e) && take_attention(c, e) &&
           (!c->plain || take_scores(c, e)) && take_given(c, e) && take_experts(c, e) && fast_take(c, e) &&
           (c->next || take_head(c, e));
}

bool cuda_name(Cuda *c, const int *names) {
    gpu_use(c->ordinal);
    if (c->names && c->named != names &&
        gpu_copy(c->names, names, (size_t)c->model->shape.vocab * sizeof *names, c->stream) == 0)
        c->named = names;
    return c->named == names;
}

static bool take_staging(Cuda *c, Staging *s, size_t bytes, Error *e) {
    s->bytes = bytes;
    return cuda_ok(c, gpu_take_pinned(&s->host, bytes), "no pinned memory", e) &&
           cuda_ok(c, gpu_event_open(&s->event), "no event", e);
}

static bool take_pinned(Cuda *c, void *out, size_t bytes, Error *e) {
    void *block;
    if (!cuda_ok(c, gpu_take_pinned(&block, bytes), "no pinned memory", e)) return false;
    memcpy(out, &block, sizeof block);
    return true;
}

bool cuda_take_pinned(Cuda *c, Error *e) {
    size_t f = sizeof(float);
    const Shape *s = &c->model->shape;
    for (int i = 0; i < STEP_STAGINGS; i++)
        if (!take_staging(c, &c->steps[i], cuda_step_size(c), e)) return false;
    size_t moves = moves_size(c), list = list_size(PANEL_ROWS);
    return take_staging(c, &c->list, moves > list ? moves : list, e) &&
           take_staging(c, &c->rows, (size_t)shape_given_width(s) * PANEL_ROWS * f, e) &&
           take_staging(c, &c->asks, asks_size(cuda_nodes(c)), e) &&
           take_pinned(c, &c->host_tops, TOPS_SIZE * f, e) &&
           take_pinned(c, &c->host_best, PANEL_ROWS * BEST_SLICES * sizeof *c->host_best, e) &&
           take_pinned(c, &c->host_overflow, sizeof *c->host_overflow, e) &&
           cuda_ok(c, gpu_fill(c->overflow, 0xff, sizeof *c->overflow, c->stream), "cannot write its memory",
                   e) &&
           take_pinned(c, &c->host_answers, answers_size(cuda_nodes(c)), e) &&
           take_pinned(c, &c->host_p, (size_t)s->vocab * f, e) &&
           (s->input != INPUT_BLOCK || (c->following = mem_new(following_floats(s), f)));
}

static void give_staging(Staging *s) {
    gpu_give_pinned(s->host);
    if (s->event) gpu_event_close(s->event);
}

void cuda_give_all(Cuda *c) {
    gpu_give(c->kept);
    gpu_give(c->copies_k);
    gpu_give(c->copies_v);
    for (size_t i = 0; i < c->block_count; i++) gpu_give(c->blocks[i]);
    MEM_FREE(c->blocks, c->following);
    for (int i = 0; i < STEP_STAGINGS; i++) give_staging(&c->steps[i]);
    give_staging(&c->list);
    give_staging(&c->rows);
    give_staging(&c->asks);
    gpu_give_pinned(c->host_tops);
    gpu_give_pinned(c->host_best);
    gpu_give_pinned(c->host_overflow);
    gpu_give_pinned(c->host_answers);
    gpu_give_pinned(c->host_p);
}

// --- memory ---------------------------------------------------------------------------------------------

// Blocks on the device, copies from pinned memory, and the errors of both. While an instance is planned,
// blocks are only added up.
//
// Invariant: every block on the device is in `blocks`, and block_count <= block_capacity.

bool cuda_ok(const Cuda *c, int code, const char *what, Error *e) {
    return code == 0 || error_system(e, "cuda:%d: %s: %s", c->ordinal, what, gpu_error(code));
}

bool cuda_take(Cuda *c, void *out, size_t bytes, bool zero, size_t *total, Error *e) {
    void *block = NULL;
    size_t unit = bytes > (size_t)1 << 20 ? (size_t)2 << 20 : 512; // devices round sizes up to this
    *total += (bytes + unit - 1) / unit * unit;
    if (c->planning) return true;
    assert(c->block_count <= c->block_capacity);
    mem_grow(&c->blocks, &c->block_capacity, c->block_count + 1, sizeof *c->blocks);
    if (!cuda_ok(c, gpu_take(&block, bytes), "no memory for the model", e)) return false;
    c->blocks[c->block_count++] = block;
    memcpy(out, &block, sizeof block);
    return !zero || cuda_ok(c, gpu_fill(block, 0, bytes, c->stream), "cannot write its memory", e);
}

void *staging_begin(Staging *s) {
    assert(s->host);
    if (s->sent) gpu_event_wait(s->event);
    s->sent = false;
    return s->host;
}

bool staging_send(Cuda *c, Staging *s, void *to, size_t bytes, Error *e) {
    assert(bytes <= s->bytes && !s->sent);
    s->sent = true;
    return cuda_ok(c, gpu_copy(to, s->host, bytes, c->stream), "cannot copy to it", e) &&
           cuda_ok(c, gpu_event_record(s->event, c->stream), "cannot mark its work", e);
}
