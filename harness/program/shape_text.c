#include "harness/program/shape_text.h"

#include "engine/base/json.h"
#include "harness/program/terminal.h"

#include <stdio.h>

char *shape_text(const Shape *s) {
    json_t *o =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "layers", s->layers, "width", s->width,
                  "heads", s->heads, "kv_heads", s->kv_heads, "head_dim", s->head_dim, "mlp_width",
                  s->mlp_width, "vocab", s->vocab, "context", s->context, "window", s->window);
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
