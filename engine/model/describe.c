#include "engine/model/describe.h"

static void describe_rope(const Rope *r, int head_dim, Text *out) {
    static const char *const kinds[] = {"plain", "linear", "llama3", "longrope"};
    text_printf(out, "rope            %s, theta %g", kinds[r->kind], r->theta);
    if (r->kind == ROPE_LINEAR || r->kind == ROPE_LLAMA3) text_printf(out, ", factor %g", r->factor);
    if (r->kind == ROPE_LONGROPE) text_printf(out, ", stretched beyond %d", r->original_context);
    if (2 * r->pairs < head_dim) text_printf(out, ", of %d in %d dimensions", 2 * r->pairs, head_dim);
    text_puts(out, "\n");
}

static void describe_ids(const Model *m, Text *out) {
    text_printf(out, "special ids     bos %d, eos", m->bos);
    for (int i = 0; i < m->eos_count; i++) text_printf(out, " %d", m->eos[i]);
    text_puts(out, m->eos_count ? "\n" : " none\n");
}

void model_describe(const Model *m, Text *out) {
    const Shape *s = &m->shape;
    int group = s->heads / s->kv_heads;
    if (m->stand_in[0]) text_printf(out, "stand-in        %s\n", m->stand_in);
    text_printf(out, "architecture    %s\n", m->architecture);
    text_printf(out, "parameters      %.1f million\n", (double)shape_parameters(s) * 1e-6);
    text_printf(out, "layers          %d of width %d, MLP %d", s->layers, s->width, s->mlp_width);
    if (m->unused_layers) text_printf(out, "; the files hold %d more, which are left out", m->unused_layers);
    text_puts(out, "\n");
    text_printf(out, "heads           %d of size %d, %d for keys (%d to one)%s\n", s->heads, s->head_dim,
                s->kv_heads, group, s->qk_norm ? ", q and k normed" : "");
    text_printf(out, "vocabulary      %d%s\n", s->vocab, s->tied_head ? ", head tied to the embedding" : "");
    if (s->real_vocab != s->vocab) text_printf(out, "                %d of them real\n", s->real_vocab);
    text_printf(out, "context         %d", s->context);
    if (s->window) text_printf(out, ", sliding window %d\n", s->window);
    else text_puts(out, ", no sliding window\n");
    describe_rope(&s->rope, s->head_dim, out);
    describe_ids(m, out);
    size_t position = 2 * (size_t)s->layers * (size_t)shape_kv_width(s) * 2;
    int kept = s->window && s->window < s->context ? s->window : s->context;
    text_printf(out, "cache           %zu bytes a position in bf16, %.2f GB at the full context\n", position,
                (double)position * kept * 1e-9);
    if (!m->layers) return;
    text_printf(out, "weights         %s, %.3f GB in %d file%s\n", dtype_name(m->dtype),
                (double)model_bytes(m) * 1e-9, m->shard_count, m->shard_count == 1 ? "" : "s");
}
