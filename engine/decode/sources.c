#include "engine/decode/sources.h"

#include <assert.h>

void offer(Offers *o, int source, int node) {
    assert(source >= 0 && source < o->source_count);
    if (node != TREE_NONE && o->count < TREE_MAX_NODES) o->rows[o->count++] = (Offer){source, node};
}

void offer_row(Offers *o, Tree *tree, int source, const int *tokens, int count) {
    offer(o, source, tree_chain(tree, tree_row(tree), tokens, count, NULL));
}

// Both climb to one depth, then together until they are the same place.
int sources_match(const Tree *t, int node, int accepted) {
    while (t->depth[node] > t->depth[accepted]) node = t->parent[node];
    while (t->depth[accepted] > t->depth[node]) accepted = t->parent[accepted];
    while (t->canonical[node] != t->canonical[accepted]) {
        node = t->parent[node];
        accepted = t->parent[accepted];
    }
    return t->depth[node];
}

void sources_judge(const Offers *o, const Tree *tree, const Verdict *v, SourceReport *out) {
    for (int i = 0; i < o->source_count; i++) out[i] = (SourceReport){.name = o->names[i]};
    for (int i = 0; i < o->count; i++) {
        SourceReport *source = &out[o->rows[i].source];
        int match = sources_match(tree, o->rows[i].node, v->node);
        source->rows++;
        if (match <= source->match) continue;
        source->match = match;
        source->rank = source->rows;
    }
}

void sources_add(SourceTotals *totals, const SourceReport *reports, int count) {
    int best = 0;
    for (int i = 0; i < count; i++) {
        totals[i].name = reports[i].name;
        totals[i].rows += reports[i].rows;
        if (reports[i].match > reports[best].match) best = i;
    }
    if (count == 0 || reports[best].match == 0) return;
    totals[best].won++;
    totals[best].tokens += reports[best].match;
}
