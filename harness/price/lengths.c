// Published lengths on another machine: a step of so many rows, the passes of a draft, and the best number of
// drafted tokens. Nothing is measured here.
#include "harness/price/prediction.h"

#include "engine/base/memory.h"
#include "harness/config/yaml.h"

#include <stdlib.h>
#include <string.h>

// --- the file --------------------------------------------------------------------------------------------

static bool read_length(const YamlNode *node, PublishedLength *out, Error *e) {
    char *key_end, *end;
    YamlNode key = yaml_key(node);
    long drafted = strtol(node->key, &key_end, 10);
    if (*key_end || key_end == node->key || drafted < 1 || drafted > DRAFTED_MOST)
        return yaml_error(&key, e, "'%s' must be a number of drafted tokens, from 1 to %d", node->key,
                          DRAFTED_MOST);
    double length = node->kind == NODE_VALUE ? strtod(node->text, &end) : 0;
    if (node->kind != NODE_VALUE || end == node->text || *end || !(length >= 1 && length <= drafted + 1))
        return yaml_error(node, e,
                          "a mean length must be a number from 1 to %ld, the drafted tokens and one more",
                          drafted + 1);
    out->drafted = (int)drafted;
    out->length = length;
    return true;
}

static bool read_mode(PublishedLengths *l, const char *model, const YamlNode *mode, Error *e) {
    if (mode->kind != NODE_MAP)
        return yaml_error(mode, e,
                          "must be a map of drafted tokens to mean lengths, as 'thinking_on: {1: 1.8}'");
    for (const YamlNode *n = mode->first; n; n = n->next) {
        if (l->count == LENGTHS_MOST) return yaml_error(n, e, "more than %d lengths", LENGTHS_MOST);
        l->items[l->count] = (PublishedLength){.model = model, .mode = mode->key};
        if (!read_length(n, &l->items[l->count], e)) return false;
        l->count++;
    }
    return true;
}

static bool read_models(PublishedLengths *l, Error *e) {
    const YamlNode *root = l->tree->root;
    if (root->kind != NODE_MAP) return yaml_error(root, e, "must be a map of models");
    for (const YamlNode *model = root->first; model; model = model->next) {
        if (model->kind != NODE_MAP)
            return yaml_error(model, e, "must be a map of modes, as 'thinking_on', each with its lengths");
        for (const YamlNode *mode = model->first; mode; mode = mode->next)
            if (!read_mode(l, model->key, mode, e)) return false;
    }
    return l->count || yaml_error(root, e, "has no lengths");
}

bool lengths_open(const char *path, PublishedLengths *out, Error *e) {
    *out = (PublishedLengths){.tree = mem_new(1, sizeof *out->tree),
                              .items = mem_new(LENGTHS_MOST, sizeof *out->items)};
    if (yaml_open(out->tree, path, e) && read_models(out, e)) return true;
    lengths_release(out);
    return false;
}

void lengths_release(PublishedLengths *l) {
    if (l->tree) yaml_release(l->tree);
    MEM_FREE(l->tree, l->items);
    *l = (PublishedLengths){0};
}

// --- prices ----------------------------------------------------------------------------------------------

// Of all layers and the head over so many rows of each sequence; a sequence's part.
static double pass_s(const Hardware *h, const StepModel *m, int rows, const LengthsPrice *how, int batch) {
    RecordedPass pass = {
        .layers = m->layers, .rows = rows, .context = how->context, .count = 1, .sequences = batch};
    double layers = recorded_price(h, m, &pass);
    pass.head = true;
    return layers + recorded_price(h, m, &pass);
}

typedef struct LengthPrice {
    double step_s, speedup; // step_s: a sequence's part, with its draft
    int beyond_rows;        // of a step of more rows than the machine was fitted to; else 0
} LengthPrice;

static LengthPrice price_of(const PublishedLength *x, const Pricing *p, const LengthsPrice *how, int batch) {
    const Hardware *h = &p->machine;
    double one = pass_s(h, &p->target, 1, how, batch),
           step = pass_s(h, &p->target, x->drafted + 1, how, batch);
    if (p->has_draft && how->block) step += pass_s(h, &p->draft, x->drafted, how, batch);
    if (p->has_draft && !how->block) step += x->drafted * pass_s(h, &p->draft, 1, how, batch);
    int rows = (x->drafted + 1) * batch;
    return (LengthPrice){step, x->length * one / step, h->most_rows && rows > h->most_rows ? rows : 0};
}

static const Column COLUMNS[] = {
    {"model mode", .help = "as the file names them"},
    {.head = "published for", .least = 16},
    {"batch", "batch", AS_COUNT, .help = "sequences that share a step"},
    {"bits", "bits", AS_COUNT, .drop = 1, .help = "of a weight"},
    {"drafted", "drafted", AS_COUNT, .help = "tokens a step"},
    {"length", "length", AS_FIXED, 2, .help = "published tokens a step"},
    {"step_s", "step ms", AS_MEASURED, .scale = 1e3, .help = "price of the step and its draft"},
    {"tokens_per_s", "tokens/s", AS_MEASURED, .help = "of all sequences"},
    {"speedup", "speedup", AS_MEASURED, .help = "over one token a step in the same batch"},
    {"best",
     .help = "the fastest number of drafted tokens for this batch and these bits, and faster than none"},
    {.head = "", .least = 14},
    {"beyond_rows", .optional = true, .help = "of a step of more rows than the machine was fitted to"},
};
const TableForm lengths_form = {"simulate FILE", TABLE_COLUMNS(COLUMNS),
                                .about = "Published mean lengths, priced."};

static void put_cell(const PublishedLengths *l, const LengthPrice *prices, int batch, int bits, int fitted,
                     RecordTable *t) {
    for (int i = 0; i < l->count; i++) {
        const PublishedLength *x = &l->items[i];
        const LengthPrice *price = &prices[i];
        bool best = price->speedup > 1;
        for (int k = 0; k < l->count; k++) // of the same model and mode
            if (l->items[k].model == x->model && l->items[k].mode == x->mode)
                best = best && prices[k].speedup <= price->speedup;
        LOCAL_TEXT of = {0};
        LOCAL_TEXT note = {0};
        text_printf(&of, "%s, %s", x->model, x->mode);
        if (best) text_puts(&note, "best");
        if (price->beyond_rows)
            text_printf(&note, "%sa step of %d rows, fitted to %d", best ? "; " : "", price->beyond_rows,
                        fitted);
        TABLE_ROW(t, CELL(x->model), CELL(x->mode), CELL(text_get(&of)), CELL(batch), CELL(bits),
                  CELL(x->drafted), CELL(x->length), CELL(price->step_s * batch),
                  CELL(x->length / price->step_s), CELL(price->speedup), CELL(best), CELL(text_get(&note)),
                  price->beyond_rows ? CELL(price->beyond_rows) : NO_CELL);
    }
}

void lengths_put(const PublishedLengths *l, const Prediction *p, const LengthsPrice *how, RecordTable *t) {
    LOCAL_MEMORY LengthPrice *prices = mem_new((size_t)l->count, sizeof *prices);
    for (int b = 0; b < p->bits.count; b++)
        for (int k = 0; k < p->batches.count; k++) {
            PredictionCell cell = {.batch = p->batches.items[k], .bits = p->bits.items[b]};
            Pricing pricing = prediction_pricing(p, &cell);
            int batch = cell.batch ? cell.batch : 1;
            for (int i = 0; i < l->count; i++) prices[i] = price_of(&l->items[i], &pricing, how, batch);
            put_cell(l, prices, batch, cell.bits, pricing.machine.most_rows, t);
        }
}
