// The life of a CUDA instance, and the backend's table: each entry goes to the card that has the layer, the
// head or the state.
//
// Instances on one device share a stream, so that their work is ordered. Hidden states that go to another
// card or instance are copied in stream order, between devices or within one; if a copy goes from card to
// card, each stream waits for the other, and the host waits for nothing.
//
// Sequences that share steps are instances on the same cards; the first one closes them. As many as a run has
// room for go through the layers together. Their commits wait for the next run, and are then one launch.
//
// Invariants: the cards of an instance have the model's layers between them, in order and without gaps; every
// card's `first` is the list's head; holder[node] is one of its cards; a sequence's commit is made before its
// nodes or its cache are used again.
#include "engine/cuda/cuda.h"

#include "engine/base/memory.h"
#include "engine/cuda/device.h"
#include "engine/cuda/fast.h"
#include "engine/cuda/kernels/moves.h"
#include "engine/cuda/sequence.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

// Holds from open to close.
static void cuda_check(const Cuda *first) {
    int layers = 0;
    for (const Cuda *c = first; c; c = c->next) {
        assert(c->first == first && c->from == layers && c->to > c->from);
        layers = c->to;
    }
    assert(layers == first->model->shape.layers);
    const CudaInstance *all = first->instance;
    assert(all->opened >= all->capturing && all->opened <= first->sequences);
}

static void close_card(Cuda *c) {
    gpu_use(c->ordinal);
    if (c->stream) gpu_stream_wait(c->stream);
    for (int i = 0; i < GRAPHS; i++)
        if (c->graphs[i].graph) gpu_graph_close(c->graphs[i].graph);
    for (int i = 0; i < HEAD_GRAPHS; i++)
        if (c->head_graphs[i]) gpu_graph_close(c->head_graphs[i]);
    cuda_give_all(c);
    fast_close(c->fast);
    cuda_give_events(c);
    if (c->stream && !c->shares_stream) gpu_stream_close(c->stream);
    MEM_FREE(c->layers, c);
}

static void close_cards(Cuda *first) {
    MEM_FREE(first->instance->holder, first->instance->moving, first->instance);
    for (Cuda *c = first, *next; c; c = next) {
        next = c->next;
        close_card(c);
    }
}

static void cuda_close(void *self) {
    Sequence *s = self;
    if (!s) return;
    s->cards->instance->capturing -= s->captures;
    if (s->number == 0) close_cards(s->cards);
    mem_free(s);
}

// --- opening

static Heads heads_of(const Shape *s, Compute compute) {
    Dtype dtype = compute_dtype(compute);
    int unit = dtype == DTYPE_F32 ? 4 : 16;
    return (Heads){.heads = s->heads,
                   .kv_heads = s->kv_heads,
                   .head_dim = s->head_dim,
                   .pitch = round_up(s->head_dim, unit),
                   .dtype = dtype,
                   .pairs = s->rope.pairs};
}

// Instances on one device take turns in one stream, so that each finds the data that another left there.
static bool take_stream(Cuda *c, const Sequence *other, Error *e) {
    const Cuda *owner = other ? other->cards : NULL;
    while (owner && owner->ordinal != c->ordinal) owner = owner->next;
    c->shares_stream = owner != NULL;
    if (owner) c->stream = owner->stream;
    return owner || cuda_ok(c, gpu_stream_open(&c->stream), "no stream", e);
}

static bool shape_fits(const Cuda *c, Error *e) {
    int dim = c->model->shape.head_dim;
    size_t shared = gpu_attention_shared(&c->heads);
    if (dim <= HEAD_DIM_MAX && shared > c->facts.shared_bytes)
        return error_input(
            e,
            "cuda:%d: heads of %d dimensions need %zu KB of shared memory in a block, the card has %zu: "
            "--compute f32 needs less, and --device cpu has them",
            c->ordinal, dim, shared >> 10, c->facts.shared_bytes >> 10);
    return dim <= HEAD_DIM_MAX ||
           error_input(e, "cuda:%d: heads of %d dimensions, at most %d are supported; --device cpu has them",
                       c->ordinal, dim, HEAD_DIM_MAX);
}

// For two cards: "sm_90 + sm_90, cuBLASLt 13.1.0".
static void name_kernels(Cuda *first) {
    CudaInstance *all = first->instance;
    size_t n = 0, m = 0;
    for (Cuda *c = first; c && n < sizeof all->isa && m < sizeof all->names; c = c->next) {
        gpu_use(c->ordinal);
        bool in_turn = c->facts.major >= 9 && !gpu_begins_early();
        n += (size_t)snprintf(all->isa + n, sizeof all->isa - n, "%ssm_%d%d%s%s", n ? " + " : "",
                              c->facts.major, c->facts.minor, in_turn ? ", none early" : "",
                              c->facts.wgmma_differs ? ", no wgmma: it differs" : "");
        m += (size_t)snprintf(all->names + m, sizeof all->names - m, "%s%s", m ? " + " : "", c->facts.name);
    }
    if (first->fast && n < sizeof all->isa)
        n += (size_t)snprintf(all->isa + n, sizeof all->isa - n, ", cuBLASLt %s",
                              first->fast->library.version);
    bool rounded = false, codes = false, decoded = false;
    for (Cuda *c = first; c; c = c->next) rounded |= c->rounded, codes |= c->coded, decoded |= c->decoded > 0;
    if (rounded && n < sizeof all->isa)
        n += (size_t)snprintf(all->isa + n, sizeof all->isa - n, ", %s weights rounded to %s",
                              first->compute == COMPUTE_BF16 ? "f16" : "bf16", compute_name(first->compute));
    const Tensor *coded = model_coded(first->model);
    if (decoded && n < sizeof all->isa)
        snprintf(all->isa + n, sizeof all->isa - n, ", %sweights of %d bits decoded at the start",
                 codes ? "some " : "", first->model->bits ? first->model->bits : coded->codes.bits);
}

static Cuda *make_card(const Model *model, int ordinal, const BackendOptions *o) {
    Cuda *c = mem_new(1, sizeof *c);
    *c = (Cuda){.model = model, .compute = o->compute, .ordinal = ordinal};
    c->layers = mem_new((size_t)model->shape.layers, sizeof *c->layers);
    c->heads = heads_of(&model->shape, o->compute);
    c->plain = o->plain;
    c->sequences = o->sequences > 1 ? o->sequences : 1;
    c->max_nodes = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    return c;
}

static Cuda *make_cards(const Model *model, const BackendOptions *o) {
    assert(o->cards.count <= CARDS_MAX);
    Cuda *first = NULL, **end = &first;
    CudaInstance *instance = mem_new(1, sizeof *instance);
    for (int i = 0; i == 0 || i < o->cards.count; i++, end = &(*end)->next) {
        *end = make_card(model, o->cards.ordinal[i], o);
        (*end)->first = first;
        (*end)->instance = instance;
    }
    instance->holder = mem_new((size_t)cuda_nodes(first), sizeof *instance->holder);
    instance->moving = mem_new((size_t)cuda_nodes(first), sizeof *instance->moving);
    for (int i = 0; i < cuda_nodes(first); i++) instance->holder[i] = first;
    int own = model->shape.context, asked = o->context;
    cuda_set_context(first, asked > 0 && asked < own ? asked : own, o);
    return first;
}

static bool find_cards(Cuda *first, const BackendOptions *o, Error *e) {
    for (Cuda *c = first; c; c = c->next)
        if (!device_find(c->ordinal, &c->facts, e) || !shape_fits(c, e) || !choices_read(&c->choices, e) ||
            (o->fast && !(c->fast = fast_open(e))))
            return false;
    return true;
}

static bool take_cards(Cuda *first, const BackendOptions *o, Error *e) {
    for (Cuda *c = first; c; c = c->next) {
        c->weight_bytes = c->cache_bytes = c->step_bytes = 0;
        bool ok = cuda_ok(c, gpu_use(c->ordinal), "cannot be used", e) && take_stream(c, o->beside, e) &&
                  cuda_take_events(c, e) && cuda_take_weights(c, e) && cuda_take_buffers(c, e) &&
                  cuda_take_pinned(c, e) && device_compare_bits(c, e) &&
                  cuda_load_weights(c, &o->progress, e);
        if (!ok) return false;
        cuda_link_products(c);
    }
    return true;
}

static void open_sequence(Cuda *first, void **self) {
    Sequence *s = mem_new(1, sizeof *s);
    *s = (Sequence){.cards = first, .number = first->instance->opened++};
    cuda_check(first);
    *self = s;
}

bool cuda_open(const Model *model, const BackendOptions *o, void **self, Error *e) {
    *self = NULL;
    if (o->first) {
        open_sequence(((const Sequence *)o->first)->cards, self);
        return true;
    }
    Cuda *first = make_cards(model, o);
    if (find_cards(first, o, e) && cuda_fit(first, o, e) && take_cards(first, o, e)) {
        name_kernels(first);
        open_sequence(first, self);
        return true;
    }
    close_cards(first);
    return false;
}

int cuda_fits(const Model *model, const BackendOptions *o) {
    Cuda *first = make_cards(model, o);
    int fits = find_cards(first, o, NULL) ? cuda_longest(first, o) : 0;
    close_cards(first);
    return fits;
}

size_t cuda_weights(const Model *model, const BackendOptions *o, size_t *decoded) {
    BackendOptions one = *o;
    Fast library = {.count = 0};
    one.cards.count = 1;
    Cuda *c = make_cards(model, &one);
    c->to = model->shape.layers;
    c->first = c;
    c->planning = true;
    c->fast = o->fast ? &library : NULL;
    (void)cuda_take_weights(c, NULL);
    size_t bytes = c->weight_bytes;
    *decoded = c->decoded;
    c->fast = NULL;
    close_cards(c);
    return bytes;
}

// --- hidden states on the move

// Copies from one card to another, after everything in both streams; later work of both comes after the copy.
static bool pass(Cuda *from, Cuda *to, float *there, const float *here, size_t bytes, Error *e) {
    return cuda_begin(from, PHASE_IDLE, e) &&
           cuda_ok(from, gpu_event_record(from->passed, from->stream), "cannot mark its work", e) &&
           cuda_ok(to, gpu_stream_after(to->stream, from->passed), "cannot wait for another card", e) &&
           cuda_begin(to, PHASE_RUN, e) &&
           cuda_ok(to, gpu_copy_peer(there, to->ordinal, here, from->ordinal, bytes, to->stream),
                   "cannot copy from another card", e) &&
           cuda_ok(to, gpu_event_record(to->passed, to->stream), "cannot mark its work", e) &&
           cuda_ok(from, gpu_stream_after(from->stream, to->passed), "cannot wait for another card", e);
}

// Takes rows on the card of `self` that shares its stream with the other instance's first card, the reader.
static float *rows_take(void *self, void *other, size_t bytes) {
    Sequence *s = self;
    const Sequence *to = other;
    void *rows = NULL;
    Cuda *lender = s->cards;
    while (lender && lender->stream != to->cards->stream) lender = lender->next;
    if (!lender || gpu_use(lender->ordinal) || gpu_take(&rows, bytes)) return NULL;
    s->lender = lender;
    return rows;
}

static void rows_drop(void *self, float *rows) {
    const Sequence *s = self;
    gpu_use(s->lender->ordinal);
    gpu_give(rows);
}

// Rows by node of the step area: where they are, of which card, and how wide.
typedef struct Rows {
    Cuda *c;
    float *rows;
    size_t width;
} Rows;

// The last card has all captured states, since they go along with the hidden ones.
static Rows state_rows(Cuda *first, int node, HiddenKind kind) {
    Cuda *last = cuda_last(first), *holder = first->instance->holder[node];
    size_t width = (size_t)first->model->shape.width;
    if (kind == HIDDEN_CAPTURED) return (Rows){last, last->kept, (size_t)last->captures.count * width};
    return (Rows){holder, holder->hidden, width};
}

static Rows given_rows(Cuda *first) {
    const Shape *s = &first->model->shape;
    return (Rows){first, shape_reads_both(s) ? first->given : first->hidden, (size_t)shape_given_width(s)};
}

static bool copy_row(Cuda *c, float *to, const float *from, size_t bytes, Error *e) {
    return cuda_ok(c, gpu_copy(to, from, bytes, c->stream), "cannot copy within it", e);
}

// Only the last card can norm a state. For another card's row it goes through the logits' buffer.
static bool keep_normed(Cuda *c, Cuda *lender, int node, float *row, Error *e) {
    size_t bytes = (size_t)c->model->shape.width * sizeof *row;
    if (!cuda_begin(c, PHASE_HEAD, e)) return false;
    if (c == lender) return cuda_norm_to(c, &node, 1, row, e);
    return cuda_norm_to(c, &node, 1, c->logits, e) && pass(c, lender, row, c->logits, bytes, e);
}

static bool keep_row(const Rows *from, Cuda *lender, int node, float *row, Error *e) {
    size_t bytes = from->width * sizeof *row;
    const float *own = from->rows + (size_t)node * from->width;
    if (from->c != lender) return pass(from->c, lender, row, own, bytes, e);
    return cuda_begin(lender, PHASE_HEAD, e) && copy_row(lender, row, own, bytes, e);
}

// The other instance's work follows and counts as its own, so this one's phase ends here.
static bool rows_keep(void *self, int node, HiddenKind kind, float *row, Error *e) {
    const Sequence *s = self;
    Cuda *c = s->cards, *lender = s->lender;
    assert(lender && node >= 0 && node < c->max_nodes);
    int at = cuda_node(s, node);
    Rows from = state_rows(c, at, kind);
    bool ok = kind == HIDDEN_NORMED ? keep_normed(cuda_last(c), lender, at, row, e)
                                    : keep_row(&from, lender, at, row, e);
    return ok && cuda_begin(lender, PHASE_IDLE, e);
}

static bool rows_give(void *self, int node, const float *row, Error *e) {
    const Sequence *s = self;
    Cuda *c = s->cards;
    assert(node >= 0 && node < c->max_nodes);
    Rows to = given_rows(c);
    int at = cuda_node(s, node);
    c->instance->holder[at] = c;
    return cuda_begin(c, PHASE_RUN, e) &&
           copy_row(c, to.rows + (size_t)at * to.width, row, to.width * sizeof *row, e);
}

static const HiddenMemory HIDDEN = {rows_take, rows_drop, rows_keep, rows_give};

// --- commits

// The copies that rows of LAYOUT_COPIED see; a sequence with fewer of them has room for more.
static void commit_to_copies(const Cuda *c, Commit commit, const MoveList *list) {
    int most = 0;
    for (int i = 0; i < list->count; i++)
        if (c->copies[list->move[i].sequence] > most) most = c->copies[list->move[i].sequence];
    commit.cache_k = c->copies_k;
    commit.cache_v = c->copies_v;
    commit.each = c->copies_room;
    for (; commit.nth < most; commit.nth++) gpu_commit(&commit, list->count, c->stream);
}

static bool commit_on(Cuda *c, const Move *moves, int count, Error *e) {
    if (!cuda_begin(c, PHASE_COMMIT, e)) return false;
    MoveList *list = staging_begin(&c->list);
    list->count = count;
    memcpy(list->move, moves, (size_t)count * sizeof *moves);
    if (!staging_send(c, &c->list, c->moves, sizeof *list + (size_t)count * sizeof *moves, e)) return false;
    Commit commit = {.list = c->moves,
                     .cache_k = c->cache_k,
                     .cache_v = c->cache_v,
                     .step_k = c->step_k,
                     .step_v = c->step_v,
                     .layers = c->to - c->from,
                     .slots = c->slots,
                     .area = cuda_nodes(c),
                     .each = 1,
                     .heads = c->heads};
    gpu_commit(&commit, count, c->stream);
    commit_to_copies(c, commit, list);
    return cuda_ok(c, gpu_launched(), "cannot commit", e) && cuda_begin(c, PHASE_IDLE, e);
}

// Makes the commits that wait.
static bool make_commits(Cuda *first, Error *e) {
    CudaInstance *all = first->instance;
    int count = all->moving_count;
    all->moving_count = 0;
    for (Cuda *c = first; c && count; c = c->next)
        if (!commit_on(c, all->moving, count, e)) return false;
    return true;
}

static bool cuda_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    const Sequence *s = self;
    Cuda *first = s->cards;
    CudaInstance *all = first->instance;
    bool unread = false;
    if (!first->layers[0].qkv.data) return true; // an adapter without attention has no keys or values
    for (Cuda *c = first; c; c = c->next) {
        if (!s->copied) c->copies[s->number] = 0; // a prompt's run: the copies are made again after it
        unread |= c->unread;
    }
    assert(all->moving_count + count <= cuda_nodes(first));
    for (int i = 0; i < count; i++)
        all->moving[all->moving_count++] = (Move){cuda_node(s, nodes[i]), slots[i], s->number};
    if (first->sequences > 1 && !unread) return true;
    return make_commits(first, e) && (!unread || cuda_wait(first, e));
}

// --- the table

// The states of the run's nodes, from the card in front: hidden ones, and those that were captured so far.
static bool pass_states(Cuda *from, Cuda *to, const SequenceRun *r, Error *e) {
    size_t width = (size_t)to->model->shape.width, count = (size_t)(r->run->last - r->run->first);
    size_t kept = (size_t)to->captures.count * width, first = (size_t)cuda_node(r->sequence, r->run->first);
    return pass(from, to, to->hidden + first * width, from->hidden + first * width,
                count * width * sizeof(float), e) &&
           (!kept || pass(from, to, to->kept + first * kept, from->kept + first * kept,
                          count * kept * sizeof(float), e));
}

static bool run_on(Cuda *c, Cuda *before, const SequenceRun *runs, int count, Error *e) {
    int a = runs->run->a, b = runs->run->b;
    if (a < c->from) a = c->from;
    if (b > c->to) b = c->to;
    if (a >= b) return true;
    for (const SequenceRun *r = runs; before && a == c->from && r < runs + count; r++)
        if (!pass_states(before, c, r, e)) return false;
    if (!cuda_step(c, runs, count, a, b, e)) return false;
    for (const SequenceRun *r = runs; r < runs + count; r++)
        for (int i = r->run->first; i < r->run->last; i++) c->instance->holder[cuda_node(r->sequence, i)] = c;
    return true;
}

static bool sees_copies(const RunCall *call) { return call->run.tree->layout == LAYOUT_COPIED; }

// Cards run their layers one after another, each on the hidden states that the previous one leaves.
static bool run_all(const SequenceRun *runs, int count, Error *e) {
    Cuda *first = runs->sequence->cards, *before = NULL;
    if (!make_commits(first, e)) return false;
    for (Cuda *c = first; c; before = c, c = c->next)
        if (!run_on(c, before, runs, count, e)) return false;
    cuda_check(first);
    return true;
}

static bool run_calls(RunCall *calls, int count, Error *e) {
    SequenceRun runs[SEQUENCES_MAX];
    for (int i = 0; i < count; i++) {
        runs[i] = (SequenceRun){.sequence = calls[i].self, .run = &calls[i].run};
        runs[i].sequence->copied = sees_copies(&calls[i]);
        assert(runs[i].sequence->cards == runs->sequence->cards);
    }
    return run_all(runs, count, e);
}

// A card that fails in a run fails each of its sequences.
static void cuda_run_together(RunCall *calls, int count) {
    for (int n; count > 0; calls += n, count -= n) {
        Error e = {0};
        int rows = 0, limit = cuda_rows_limit(((const Sequence *)calls->self)->cards);
        // As many share a run as its rows have room for, all with copies or none.
        for (n = 0; n < count; n++) {
            rows += calls[n].run.last - calls[n].run.first;
            if (n && (rows > limit || sees_copies(&calls[n]) != sees_copies(calls))) break;
        }
        bool ok = run_calls(calls, n, &e);
        for (int i = 0; i < n; i++) {
            calls[i].ok = ok;
            calls[i].error = e;
        }
    }
}

static bool cuda_run(void *self, const StepRun *run, Error *e) {
    RunCall call = {.self = self, .run = *run};
    return run_calls(&call, 1, e);
}

// The last card has the head. States that left the layers on another card (an early exit) are copied there;
// `holder` stays, since the node's run resumes on its own card.
static bool read_panel(Cuda *first, const HeadRow *rows, int count, unsigned want, Error *e) {
    Cuda *last = cuda_last(first);
    size_t width = (size_t)first->model->shape.width;
    for (const HeadRow *r = rows; r < rows + count; r++) {
        Cuda *c = first->instance->holder[r->node];
        size_t at = (size_t)r->node * width;
        if (c != last && !pass(c, last, last->hidden + at, c->hidden + at, width * sizeof(float), e))
            return false;
    }
    return cuda_head(last, rows, count, want, e);
}

static bool read_calls(const HeadCall *calls, int count, unsigned want, Error *e) {
    Cuda *first = ((const Sequence *)calls->self)->cards;
    HeadRow rows[PANEL_ROWS];
    int n = 0;
    if (want & HEAD_TOP && (calls->out->top < 1 || calls->out->top > TOP_MAX))
        return error_input(e, "top %d: a card ranks 1 to %d tokens", calls->out->top, TOP_MAX);
    for (const HeadCall *call = calls; call < calls + count; call++)
        for (int i = 0; i < call->count; i++) {
            rows[n++] = (HeadRow){cuda_node(call->self, call->nodes[i]), call->out, i};
            if (n < PANEL_ROWS) continue;
            if (!read_panel(first, rows, n, want, e)) return false;
            n = 0;
        }
    return n == 0 || read_panel(first, rows, n, want, e);
}

static void cuda_head_together(HeadCall *calls, int count, unsigned want) {
    Error e = {0};
    bool ok = read_calls(calls, count, want, &e);
    for (int i = 0; i < count; i++) {
        calls[i].ok = ok;
        calls[i].error = e;
    }
}

static bool cuda_run_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    return read_calls(&(HeadCall){.self = self, .nodes = nodes, .count = count, .out = out}, 1, want, e);
}

// The host puts the steps of one card into its stream, and waits for the last of them. On several cards, or
// where a library adds up, it waits for each id.
static bool cuda_chain(void *self, const StepRun *run, const int *names, int count, int *ids, Error *e) {
    Sequence *s = self;
    Cuda *first = s->cards;
    StepRun step = *run;
    bool ahead = !first->next && !first->fast && (!names || cuda_name(first, names));
    int token = 0, row = 0;
    assert(count >= 1 && count <= CHAIN_MOST && step.b == first->model->shape.layers);
    s->copied = run->tree->layout == LAYOUT_COPIED;
    for (int i = 0; i < count; i++, step.first = step.last++) {
        SequenceRun own = {s, &step, i ? &token : NULL, NULL};
        HeadOut out = {.argmax = &ids[i]};
        if (!run_all(&own, 1, e)) return false;
        if (ahead && !cuda_head_ahead(first, i, &row, e)) return false;
        ahead = ahead && row >= 0;
        int last = step.last - 1;
        if (!ahead && !cuda_run_head(self, &last, 1, HEAD_ARGMAX, &out, e)) return false;
        token = ahead ? -1 - row : ids[i];
        if (!ahead && ids[i] == HEAD_BAD) token = 0; // the caller refuses the chain
        else if (!ahead && names) token = names[ids[i]];
    }
    if (ahead && !cuda_wait(first, e)) return false;
    for (int i = 0; ahead && i < count; i++) ids[i] = cuda_chained(first, i);
    return true;
}

// Likewise, level by level. Where the host would wait for each, the session does it all.
static bool cuda_grow(void *self, const StepRun *run, const int *names, int levels, HeadOut *out, bool *grown,
                      Error *e) {
    Sequence *s = self;
    Cuda *c = s->cards;
    StepRun step = *run;
    int k = out->top, n = 1 + levels * k, end = run->last - 1;
    *grown = !c->next && !c->fast && k <= GROW_MOST && n * k <= TOPS && (!names || cuda_name(c, names));
    if (!*grown) return true;
    Grow g = {.step = c->step,
              .k = k,
              .end = end,
              .first = cuda_node(s, 0),
              .position = tree_position(run->tree, end),
              .names = names ? c->names : NULL,
              .score = c->grown_score,
              .above = c->grown_above};
    s->copied = false;
    for (int row = 0, rows = 1; g.level <= levels; g.level++, step.first = step.last, step.last += k) {
        if (!run_all(&(SequenceRun){s, &step, NULL, &g}, 1, e) || !cuda_head_level(c, row, n, &g, e))
            return false;
        row += rows, rows = k;
    }
    return cuda_tops(c, n, out, e);
}

static bool cuda_get_distribution(void *self, int node, const Sampling *sampling, int vocab, float *p,
                                  Error *e) {
    const Sequence *s = self;
    return cuda_distribution(cuda_last(s->cards), cuda_node(s, node), sampling, vocab, p, e);
}

static bool cuda_run_follow(void *self, int node, Follow *f, Error *e) {
    const Sequence *s = self;
    return cuda_follow(cuda_last(s->cards), cuda_node(s, node), f, e);
}

// Neighbouring nodes come back in one copy.
static bool get_rows(Cuda *first, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    for (int i = 0, n; i < count; i += n) {
        Rows from = state_rows(first, nodes[i], kind);
        assert(from.c->first == first);
        for (n = 1; i + n < count && nodes[i + n] == nodes[i] + n; n++)
            if (state_rows(first, nodes[i + n], kind).c != from.c) break;
        if (!cuda_begin(from.c, PHASE_HEAD, e) ||
            !cuda_ok(from.c,
                     gpu_copy(rows + (size_t)i * from.width, from.rows + (size_t)nodes[i] * from.width,
                              (size_t)n * from.width * sizeof *rows, from.c->stream),
                     "cannot copy from it", e))
            return false;
    }
    return cuda_wait(first, e);
}

static bool cuda_get_hidden(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    const Sequence *s = self;
    int own[TREE_MAX_NODES];
    assert(count <= TREE_MAX_NODES);
    for (int i = 0; i < count; i++) own[i] = cuda_node(s, nodes[i]);
    if (!make_commits(s->cards, e)) return false; // reading a state waits for all earlier work
    return kind == HIDDEN_NORMED ? cuda_normed(cuda_last(s->cards), own, count, rows, e)
                                 : get_rows(s->cards, own, count, kind, rows, e);
}

static bool cuda_set_hidden(void *self, int first, int count, const float *rows, Error *e) {
    const Sequence *s = self;
    Cuda *c = s->cards;
    Rows to = given_rows(c);
    size_t width = to.width;
    first = cuda_node(s, first);
    if (!cuda_begin(c, PHASE_RUN, e)) return false;
    for (int done = 0, n; done < count; done += n) {
        n = count - done < PANEL_ROWS ? count - done : PANEL_ROWS;
        memcpy(staging_begin(&c->rows), rows + (size_t)done * width, (size_t)n * width * sizeof *rows);
        if (!staging_send(c, &c->rows, to.rows + (size_t)(first + done) * width,
                          (size_t)n * width * sizeof *rows, e))
            return false;
    }
    for (int i = 0; i < count; i++) c->instance->holder[first + i] = c;
    return true;
}

// Sequences that capture do so after the same layers. One that doesn't leaves the others theirs.
static bool cuda_capture(void *self, const Captures *captures, Error *e) {
    Sequence *s = self;
    Cuda *first = s->cards;
    first->instance->capturing -= s->captures;
    s->captures = captures->count > 0;
    first->instance->capturing += s->captures;
    for (Cuda *c = first; c && (s->captures || !first->instance->capturing); c = c->next)
        if (!cuda_take_kept(c, captures, e)) return false;
    return true;
}

static void cuda_reset(void *self) { (void)self; } // no slot is read before it's written again

// Bytes of weights that a step reads: of all cards, and of the largest expert.
static void report_reads(const Cuda *first, BackendReport *out) {
    const Model *m = first->model;
    out->layer_bytes = cuda_reads(first, 0, false);
    out->weight_bytes = model_fc_bytes(m);
    for (const Cuda *c = first; c; c = c->next) {
        if (!c->next)
            out->head_bytes = cuda_tensor_reads(&c->head, &m->head) + tensor_bytes(&m->final_norm) +
                              cuda_tensor_reads(&c->markov, &m->markov_to);
        for (int i = c->from; i < c->to; i++) {
            size_t expert = cuda_reads(c, i, true);
            out->weight_bytes += cuda_reads(c, i, false);
            if (expert > out->expert_bytes) out->expert_bytes = expert;
        }
    }
    out->weight_bytes += out->head_bytes;
}

static void cuda_report(const void *self, BackendReport *out) {
    static const char DIFFERS[] = "its wgmma doesn't give mma.sync's bits, so products of more than 16 rows "
                                  "take mma.sync, several times as long: please report the card and driver";
    const Sequence *s = self;
    const Cuda *first = s->cards;
    const Model *m = first->model;
    *out = (BackendReport){.name = "cuda",
                           .device = first->instance->names,
                           .isa = first->instance->isa,
                           .score_bytes = first->plain ? shape_score_bytes(&m->shape) : 0,
                           .own_clock = true};
    for (const Cuda *c = first; c; c = c->next) {
        if (c->facts.wgmma_differs) out->note = DIFFERS;
        out->cache_bytes += s->number ? 0 : c->cache_bytes; // the first one has all memory
        out->step_bytes += s->number ? 0 : c->step_bytes;
        out->seconds.run += c->seconds[PHASE_RUN];
        out->seconds.head += c->seconds[PHASE_HEAD];
        out->seconds.commit += c->seconds[PHASE_COMMIT];
        out->waited_s += c->waited_s;
    }
    report_reads(first, out);
    out->kv_bytes_per_position =
        2 * (size_t)m->shape.layers * (size_t)shape_kv_width(&m->shape) * dtype_size(first->heads.dtype);
}

const Backend cuda_backend = {BACKEND_ROW(cuda),
                              .head = cuda_run_head,
                              .chain = cuda_chain,
                              .grow = cuda_grow,
                              .distribution = cuda_get_distribution,
                              .follow = cuda_run_follow,
                              .hidden = &HIDDEN};
