// One session step per pass, without the documents that are known: a row's bits don't depend on other
// documents. The session is reset before each pass, so nothing of a pass reaches the next
// one.
#include "engine/train/target.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool is_medusa(const Target *t) { return t->choice.kind.variant == ADAPTER_MEDUSA; }

// The layers after which the states in a row of exits are; none: there are no exits.
static Captures exits_of(const TargetChoice *c, bool adapter) {
    AdapterVariant v = c->kind.variant;
    if (v == ADAPTER_EAGLE3 || v == ADAPTER_MTP || v == ADAPTER_DFLASH)
        return adapter_captures(&c->kind, &c->model->shape);
    if (!adapter || v == ADAPTER_MEDUSA || v == ADAPTER_EAGLE) return (Captures){0};
    return (Captures){1, {c->kind.exit_layer}};
}

// Allocates all that the choice needs. False if memory ran out.
static bool take(Target *t, const TargetChoice *c, bool draft) {
    size_t exits = (size_t)t->read.count, rows = (size_t)t->rows,
           row = (size_t)c->model->shape.width * sizeof(float);
    size_t vocab = (size_t)c->model->head.rows, learnt = c->kind.vocab ? (size_t)c->kind.vocab : vocab;
    MemBlocks *b = &t->blocks;
    return mem_take(b, &t->head, learnt, row) && (!draft || mem_take(b, &t->embedding, vocab, row)) &&
           (!exits || (mem_take(b, &t->exits, rows, exits * row) && mem_take(b, &t->captured, rows, row))) &&
           mem_take(b, &t->states, rows + ADAPTER_HEADS_MAX, row) &&
           mem_take(b, &t->nodes, rows, sizeof *t->nodes);
}

bool target_open(Target *t, const TargetChoice *c, bool adapter, int rows, Error *e) {
    *t = (Target){.choice = *c, .rows = rows, .read = exits_of(c, adapter)};
    if (rows > c->session->tree.capacity)
        return error_input(e, "a pass of %d rows is more than the target takes at once, %d", rows,
                           c->session->tree.capacity);
    if (take(t, c, adapter && c->kind.variant >= ADAPTER_EAGLE)) {
        const Tensor *head = &c->model->head;
        if (!c->kind.vocab) tensor_load(head, t->head);
        for (int i = 0; i < c->kind.vocab; i++)
            tensor_row(head, (size_t)c->draft_ids[i], t->head + (size_t)i * (size_t)head->columns);
        if (t->embedding) tensor_load(&c->model->embedding, t->embedding);
        return true;
    }
    target_close(t);
    return error_system(e, "out of memory for the states of %d rows", rows);
}

void target_close(Target *t) {
    mem_free_all(&t->blocks);
    file_unmap(&t->kept);
    *t = (Target){0};
}

// --- kept states -----------------------------------------------------------------------------------------

size_t target_kept_bytes(const Target *t, size_t tokens) {
    return tokens * (size_t)(t->read.count + 1) * (size_t)t->choice.model->shape.width * sizeof(float);
}

bool target_keep(Target *t, size_t tokens, size_t most, Error *e) {
    size_t places = most / target_kept_bytes(t, 1);
    if (places > tokens) places = tokens;
    if (!places) return true;
    if (!mem_take(&t->blocks, &t->known, places, sizeof *t->known))
        return error_system(e, "out of memory for the states of %zu tokens", places);
    t->places = places;
    return file_empty(target_kept_bytes(t, places), &t->kept, e);
}

// Copies row r's exits and state to where they are kept, or from there.
static void copy_kept(const Target *t, size_t place, int r, bool keep) {
    size_t width = (size_t)t->choice.model->shape.width, exits = width * (size_t)t->read.count;
    float *kept = (float *)(uintptr_t)(t->kept.data + target_kept_bytes(t, place)),
          *exit = t->exits + exits * (size_t)r, *state = t->states + width * (size_t)r;
    if (exits) memcpy(keep ? kept : exit, keep ? exit : kept, exits * sizeof *kept);
    memcpy(keep ? kept + exits : state, keep ? state : kept + exits, width * sizeof *kept);
}

// Copies the known documents of a pass, and begins a step for the others. One root per document: roots on an
// empty context are separate sequences. Returns how many rows are to be run.
static int place_rows(Target *t, const int *tokens, const int *start, const size_t *places, int rows) {
    Session *s = t->choice.session;
    int missing = 0;
    session_reset(s);
    for (int from = 0, to; from < rows; from = to) {
        for (to = from + 1; to < rows && start[to] == from; to++) {}
        bool known = places[to - 1] < t->places && t->known[places[to - 1]];
        if (!known && !missing) session_begin_step(s, false, LAYOUT_TREE);
        for (int r = from; r < to; r++) {
            if (known) t->nodes[r] = TREE_NONE;
            else if (r == from) t->nodes[r] = tree_root(&s->tree, tokens[r]);
            else t->nodes[r] = tree_probe(&s->tree, t->nodes[r - 1], tokens[r], false);
            if (known) copy_kept(t, places[r], r, false);
        }
        missing += known ? 0 : to - from;
    }
    return missing;
}

// --- a run -----------------------------------------------------------------------------------------------

// Gets the states of the rows that are run.
static bool get_rows(const Target *t, int rows, HiddenKind kind, float *out, Error *e) {
    size_t width = (size_t)t->choice.model->shape.width;
    for (int from = 0, to; from < rows; from = to + 1) {
        for (to = from; to < rows && t->nodes[to] != TREE_NONE; to++) {}
        if (to > from && !session_get_hidden(t->choice.session, t->nodes + from, to - from, kind,
                                             out + (size_t)from * width, e))
            return false;
    }
    return true;
}

// Runs the rows through the layers below their exits, and fills those.
static bool run_to_exits(Target *t, int rows, Error *e) {
    Session *s = t->choice.session;
    size_t width = (size_t)s->shape.width, count = (size_t)t->read.count;
    for (size_t i = 0; i < count; i++) {
        if (!session_run(s, t->read.layers[i], e) || !get_rows(t, rows, HIDDEN_RAW, t->captured, e))
            return false;
        for (size_t r = 0; r < (size_t)rows; r++)
            if (t->nodes[r] != TREE_NONE)
                memcpy(t->exits + (r * count + i) * width, t->captured + r * width, width * sizeof *t->exits);
    }
    return true;
}

bool target_run(Target *t, const int *tokens, const int *start, const size_t *places, int rows, Error *e) {
    Session *s = t->choice.session;
    assert(rows >= 1 && rows <= t->rows && start[0] == 0);
    int missing = place_rows(t, tokens, start, places, rows);
    if (!missing) return true;
    if (s->tree.count < missing)
        return error_input(e, "the target has no room for a document of a pass: its context is %d",
                           s->context);
    bool ok = run_to_exits(t, rows, e) && session_run(s, s->shape.layers, e) &&
              get_rows(t, rows, HIDDEN_NORMED, t->states, e);
    for (size_t i = 0, n = (size_t)rows * (size_t)s->shape.width; ok && i < n; i++)
        if (!isfinite(t->states[i]))
            ok = error_input(e,
                             "model '%s': the hidden states after token %d are not finite (NaN or infinite); "
                             "'outpace model info %s --check' looks for weights that are not",
                             s->name, tokens[i / (size_t)s->shape.width], s->name);
    for (int r = 0; ok && r < rows; r++)
        if (t->nodes[r] != TREE_NONE && places[r] < t->places) {
            copy_kept(t, places[r], r, true);
            t->known[places[r]] = true;
        }
    return ok;
}

void target_batch(const Target *t, int head, const int *tokens, const int *start, int rows, int *targets,
                  Batch *b) {
    bool eagle = t->embedding && adapter_is_eagle(t->choice.kind.variant);
    int ahead = is_medusa(t) || eagle ? head + 1 : 0;
    assert(rows <= t->rows && head >= 0 && ahead <= ADAPTER_HEADS_MAX);
    for (int r = 0; r < rows; r++) targets[r] = r + ahead < rows && start[r + ahead] == start[r] ? 0 : -1;
    *b = (Batch){.tokens = t->embedding ? tokens : NULL,
                 .targets = targets,
                 .start = start,
                 .rows = rows,
                 .states = t->exits ? t->exits : t->states,
                 .wanted = t->states + (size_t)ahead * (size_t)t->choice.model->shape.width};
}

double target_weight(const Target *t, int head) { return is_medusa(t) ? pow(MEDUSA_DECAY, head + 1) : 1; }

void target_start(const Target *t, Network *n, uint64_t seed) {
    const Parameters *p = &n->parameters;
    size_t width = (size_t)n->shape.width;
    parameters_start(p, &n->shape, seed, n->weights);
    if (p->at[W_FINAL_NORM] != NO_PARAMETER)
        tensor_load(&t->choice.model->final_norm, n->weights + p->at[W_FINAL_NORM]);
    if (p->at[W_HEAD] != NO_PARAMETER)
        memcpy(n->weights + p->at[W_HEAD], t->head, (size_t)n->shape.vocab * width * sizeof(float));
    if (p->at[W_FC_BIAS] != NO_PARAMETER) memset(n->weights + p->at[W_FC_BIAS], 0, width * sizeof(float));
    if (p->at[W_CONFIDENCE_BIAS] != NO_PARAMETER) n->weights[p->at[W_CONFIDENCE_BIAS]] = 0;
    if (!is_medusa(t)) return;
    memset(n->weights + p->layers->at[W_GATE], 0, width * width * sizeof(float));
    memset(n->weights + p->layers->at[W_GATE_BIAS], 0, width * sizeof(float));
}
