// DSpark's heads (engine/model/follow.h) with the products of all threads.
#include "engine/cpu/products.h"
#include "engine/model/follow.h"

size_t cpu_following(const Shape *s) { return following_floats(s) + (size_t)s->vocab; }

static void multiply(Cpu *c, int node, const Tensor *w, float *x, float *y) {
    const Tree tree = {.count = 0};
    const StepRun run = {.tree = &tree};
    const Member member = {c, &run, 0, node, 1, 0, ATTEND_WHOLE};
    const Work work = {
        .c = c->first, .layer = c->model->shape.layers - 1, .rows = 1, .members = &member, .count = 1};
    const Products p = {.work = &work, .x = x, .w = {w}, .y = {y}, .count = 1, .what = ROUNDED_MLP_PRODUCT};
    cpu_project(&p);
}

void cpu_follow(Cpu *c, int node, Follow *f) {
    const Model *m = c->model;
    const BlockDraft *b = &m->shape.block;
    const Following at = following_at(&m->shape, c->first->following);
    float *bias = c->first->following + following_floats(&m->shape);
    cpu_normed(c, node, at.y);
    follow_begin(m, f, &at);
    if (!b->markov || !f->logits) return;
    if (b->markov >= MARKOV_GATED) {
        follow_inputs(m, f->state, &at);
        multiply(c, node, &m->markov_gate, at.x, at.gate);
        follow_gate(m, f->state, &at);
    }
    multiply(c, node, &m->markov_to, at.e, bias);
    for (int i = 0; i < m->shape.vocab; i++) f->logits[i] += bias[i];
}
