#include "harness/program/shape_text.h"

#include "engine/base/json.h"
#include "harness/program/terminal.h"

#include <stdio.h>

static void add_part(json_t *parts, const char *name, const Adapter *a) {
    size_t parameters = a ? adapter_parameters(a) : 0;
    if (!parameters) return;
    json_t *part = json_pack("{s:s, s:I}", "variant", adapter_variant_name(a->kind.variant), "parameters",
                             (json_int_t)parameters);
    if (a->trained > 0) json_object_set_new(part, "trained_tokens", json_integer(a->trained));
    json_object_set_new(parts, name, part);
}

char *shape_text(const Shape *s, const Adapter *adapter, const Adapter *heads) {
    json_t *parts = json_object();
    add_part(parts, "adapter", adapter);
    add_part(parts, "heads", heads);
    json_t *o =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "layers", s->layers, "width", s->width,
                  "heads", s->heads, "kv_heads", s->kv_heads, "head_dim", s->head_dim, "mlp_width",
                  s->mlp_width, "vocab", s->vocab, "context", s->context, "window", s->window);
    if (json_object_size(parts)) json_object_set(o, "parts", parts);
    json_decref(parts);
    char *text = json_text(o, JSON_COMPACT);
    json_decref(o);
    return text;
}

void shape_warn(const Model *m, const char *name) {
    if (m->unused_layers)
        fprintf(
            stderr,
            "warning: '%s' has %d layers, as its config.json says; the %d behind them in its files are left "
            "out\n",
            SHOWN(name), m->shape.layers, m->unused_layers);
}
