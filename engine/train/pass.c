// A layer's attention cut into tasks, the same ones in both directions.
#include "engine/train/pass.h"

#include "engine/train/attention.h"

static AttentionTask attention_task(const Pass *p, const DocumentRows *d, int head) {
    Network *n = p->n;
    const Shape *s = &n->shape;
    LayerTrace *t = &n->layers[p->layer];
    int q = shape_q_width(s), kv = shape_kv_width(s), group = s->heads / s->kv_heads, size = s->head_dim;
    size_t row = (size_t)(d->first * pass_qkv_width(s)), mixed = (size_t)(d->first * q);
    size_t at_q = row + (size_t)(head * group * size), at_k = row + (size_t)(q + head * size);
    size_t at_v = at_k + (size_t)kv, at_mixed = mixed + (size_t)(head * group * size);
    return (AttentionTask){.rows = d->count,
                           .group = group,
                           .head_dim = size,
                           .stride = (size_t)pass_qkv_width(s),
                           .mixed_stride = (size_t)q,
                           .q = t->qkv + at_q,
                           .k = t->qkv + at_k,
                           .v = t->qkv + at_v,
                           .mixed = t->mixed + at_mixed,
                           .dmixed = n->slopes.mixed + at_mixed,
                           .dq = n->slopes.qkv + at_q,
                           .dk = n->slopes.qkv + at_k,
                           .dv = n->slopes.qkv + at_v};
}

void pass_attention(const Pass *p, int thread, int threads, bool backward) {
    int heads = p->n->shape.kv_heads;
    for (int i = thread; i < p->documents * heads; i += threads) {
        AttentionTask t = attention_task(p, &p->n->documents[i / heads], i % heads);
        if (backward) attention_backward(&t, p->n->kernels, p->n->scratch[thread]);
        else attention_forward(&t, p->n->kernels, p->n->scratch[thread]);
    }
}
