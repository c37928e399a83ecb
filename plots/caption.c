// A caption to paste: sentences from the table of figures, the data, the run (figures/caption.sql), and the
// notes that stand under a figure with a footer.
#include "plots/data.h"

#include "engine/base/shipped.h"
#include "plots/plots.h"
#include "results/rows.h"

#include <ctype.h>
#include <string.h>

EMBED(figures_caption, "plots/figures/caption.sql")

// A sentence begins with a capital, unless with a symbol of one letter.
static void put_sentence(Text *out, const char *text) {
    size_t n = strlen(text);
    if (!n) return;
    text_printf(out, "%s%c%s%s", out->length ? " " : "",
                text[1] == ' ' ? *text : toupper((unsigned char)*text), text + 1,
                strchr(".!?", text[n - 1]) ? "" : ".");
}

bool plot_caption(Store *store, const Figure *f, int64_t run, const char *computed, const PlotData *d,
                  Text *out, Error *e) {
    Text first = {0}, settings = {0};
    Rows *r = rows_ask(store, figures_caption, run, e);
    put_sentence(out, f->summary);
    if (d->shared.length) text_printf(&first, "shown: %s", text_get(&d->shared));
    put_sentence(out, text_get(&first));
    text_release(&first);
    if (f->caption) put_sentence(out, f->caption);
    if (d->intervals) put_sentence(out, "intervals hold 95 of 100 resamples of prompts");
    rows_bind_text(r, 2, computed);
    while (rows_next(r)) put_sentence(out, rows_text(r, 0));
    // All settings of the bars, since a narrow picture has only the methods' names.
    for (size_t i = 0; i < d->settings.count; i++)
        text_printf(&settings, "%s%s", i ? "; " : "settings: ", d->settings.items[i]);
    put_sentence(out, text_get(&settings));
    text_release(&settings);
    for (size_t i = 0; i < d->notes.count; i++) put_sentence(out, d->notes.items[i]);
    return rows_end(r, true, e);
}
