#include "plots/losses.h"

#include "engine/base/shipped.h"
#include "engine/base/memory.h"
#include "plots/draw.h"

#include <math.h>
#include <string.h>

EMBED(plots_losses_gp, "plots/figures/losses.gp")

static bool add_name(Names *n, const char *text) {
    if (!mem_grow((void **)&n->items, &n->capacity, n->count + 1, sizeof *n->items)) return false;
    if (!(n->items[n->count] = mem_text(text, strlen(text)))) return false;
    n->count++;
    return true;
}

// A series without a number is left out.
static bool add_block(PlotData *d, const PlotLosses *l, int series, const char *name) {
    int rows = 0, number = (int)d->series.count + 1;
    for (size_t i = 0; i < l->count; i++) rows += isfinite(l->series[series][i]);
    if (!rows) return true;
    text_printf(&d->numbers, "%s# %s\n# step loss\n", d->count ? "\n\n" : "", name);
    for (size_t i = 0; i < l->count; i++)
        if (isfinite(l->series[series][i]))
            text_printf(&d->numbers, "%.9g %.9g\n", l->steps[i], l->series[series][i]);
    if (!mem_grow((void **)&d->blocks, &d->capacity, d->count + 1, sizeof *d->blocks)) return false;
    d->blocks[d->count++] = (PlotBlock){.panel = 1, .series = number, .colour = number, .rows = rows};
    return add_name(&d->series, name) && add_name(&d->colours, name);
}

bool plot_losses(const PlotLosses *l, const PlotOptions *o, const char *path, Output *out, Error *e) {
    const Figure figure = {.name = "losses",
                           .summary = "Losses of a training",
                           .script = plots_losses_gp,
                           .drawing = "",
                           .width = 700,
                           .height = 320};
    PlotData d = {0};
    bool ok = (add_name(&d.panels, l->title) && add_name(&d.titles, l->title) &&
               add_block(&d, l, 0, "batches") && add_block(&d, l, 1, "held out") && !d.numbers.failed) ||
              error_system(e, "out of memory for a figure");
    ok = ok && (d.count || error_input(e, "there is no loss yet to draw: train first"));
    ok = ok && plot_draw(&figure, &d, o, path, out, e);
    plot_data_release(&d);
    return ok;
}
