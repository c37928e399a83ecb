// Lists of names for completions. One that can't be read, such as a store that isn't there, is empty.
#include "harness/cli/command.h"

#include "datasets/datasets.h"
#include "engine/base/shipped.h"
#include "engine/decode/method.h"
#include "engine/text/template.h"
#include "harness/papers/catalogue.h"
#include "plots/plots.h"
#include "results/rows.h"

#include <string.h>

static void models(UNUSED const char *token, Text *out) { shipped_models(out); }

// Of the store where commands look without --db, the newest first.
static void runs(UNUSED const char *token, Text *out) {
    LOCAL_STORE *store =
        file_exists(STORE_DEFAULT) ? store_open(STORE_DEFAULT, STORE_READ, NULL, NULL) : NULL;
    Rows *r =
        store ? rows_open(store, "SELECT name FROM run GROUP BY name ORDER BY max(id) DESC LIMIT 100", NULL)
              : NULL;
    if (r) text_puts(out, "last\n");
    while (rows_next(r)) text_printf(out, "%s\n", rows_text(r, 0));
    rows_end(r, true, NULL);
}

static void figure_names(UNUSED const char *token, Text *out) {
    for (int i = 0; i < figure_count; i++) text_printf(out, "%s\n", figures[i].name);
    text_puts(out, "all\n");
}

static void datasets(UNUSED const char *token, Text *out) {
    KnownFile f, last = {.name = {.n = 0}};
    for (size_t i = 0; known_at(i, &f); last = f, i++)
        if (f.name.n != last.name.n || memcmp(f.name.at, last.name.at, f.name.n) != 0)
            text_printf(out, "%.*s\n", (int)f.name.n, f.name.at);
}

static void templates(UNUSED const char *token, Text *out) {
    size_t count;
    const Template *table = template_table(&count);
    for (size_t i = 0; i < count; i++) text_printf(out, "%s\n", table[i].name);
    text_puts(out, TEMPLATE_OF_MODEL "\n");
}

static void items(UNUSED const char *token, Text *out) {
    LOCAL(catalogue_release) Catalogue c;
    catalogue_open(&c);
    for (int i = 0; i < c.item_count; i++) text_printf(out, "%s\n", c.items[i].name);
}

// "lookahead:W=3," and each parameter; "lookahead:mode=" and each of its choices.
static void parameters(const MethodInfo *m, const char *token, Text *out) {
    const char *comma = strrchr(token, ','), *last = (comma ? comma : strchr(token, ':')) + 1;
    size_t key = strcspn(last, "=");
    for (size_t i = 0; i < m->param_count; i++) {
        const Arg *a = &m->params[i];
        bool chosen = last[key] && strlen(a->name) == key && strncmp(a->name, last, key) == 0;
        if (!last[key]) text_printf(out, "%.*s%s=\n", (int)(last - token), token, a->name);
        for (int j = 0; chosen && a->type == ARG_CHOICE && a->choices[j]; j++)
            text_printf(out, "%.*s=%s\n", (int)(last + key - token), token, a->choices[j]);
    }
}

static void methods(const char *token, Text *out) {
    size_t count, n = strcspn(token, ":");
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (!token[n]) text_printf(out, "%s\n", table[i]->name);
        else if (strlen(table[i]->name) == n && strncmp(table[i]->name, token, n) == 0)
            parameters(table[i], token, out);
    }
}

// A name that begins with another one comes before it.
static const WordKind KINDS[] = {
    {"MODEL", true, models, NULL},      {"CONFIG.yaml|RUN", true, runs, ""},
    {"CONFIG.yaml", true, NULL, ""},    {"RUN", false, runs, NULL},
    {"A B", false, runs, NULL},         {"FIGURE", false, figure_names, NULL},
    {"SHAPE", true, NULL, "shapes"},    {"MACHINE", true, NULL, "hardware"},
    {"DATASET", false, datasets, NULL}, {"TEMPLATE", false, templates, NULL},
    {"ITEM", false, items, NULL},       {"METHOD", false, methods, NULL},
};

void words_list(const WordKind *k, const char *token, Text *out) {
    if (k->folder) shipped_names(k->folder, out, NULL);
    if (k->list) k->list(token, out);
}

const WordKind *words_kind(const char *usage) {
    usage += *usage == '[';
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strncmp(usage, KINDS[i].name, strlen(KINDS[i].name)) == 0) return &KINDS[i];
    return NULL;
}
