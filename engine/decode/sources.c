// Rows are compared as paths of the tree: merged or not, equal paths have the same canonical node.
//
// Invariant, asserted by sources_check(): every row has a source with a name, and a node.
#include "engine/decode/sources.h"

#include <assert.h>

static void sources_check(const Sources *s) {
    assert(s->names && s->source_count >= 1 && s->source_count <= SOURCES_MAX);
    assert(s->count >= 0 && s->count <= TREE_MAX_NODES);
    if (s->count == 0) return;
    const SourceRow *last = &s->rows[s->count - 1]; // the others were last before
    assert(last->source >= 0 && last->source < s->source_count && last->node >= 0);
}

void sources_record(Sources *s, int source, int node) {
    assert(source >= 0 && source < s->source_count);
    if (node != TREE_NONE && s->count < TREE_MAX_NODES) s->rows[s->count++] = (SourceRow){source, node};
    sources_check(s);
}

void sources_propose(Sources *s, Tree *tree, int source, const int *tokens, int count) {
    sources_record(s, source, tree_chain(tree, tree_row(tree), tokens, count, NULL));
}

// Both ends climb to the same depth, then together until they meet.
int sources_match(const Tree *t, int node, int accepted) {
    assert(node >= 0 && node < t->count && accepted >= 0 && accepted < t->count);
    while (t->depth[node] > t->depth[accepted]) node = t->parent[node];
    while (t->depth[accepted] > t->depth[node]) accepted = t->parent[accepted];
    while (t->canonical[node] != t->canonical[accepted]) {
        node = t->parent[node];
        accepted = t->parent[accepted];
    }
    return t->depth[node];
}

void sources_judge(const Sources *s, const Tree *tree, const Verdict *v, SourceReport *out) {
    for (int i = 0; i < s->source_count; i++) out[i] = (SourceReport){.name = s->names[i]};
    for (int i = 0; i < s->count; i++) {
        SourceReport *source = &out[s->rows[i].source];
        int match = sources_match(tree, s->rows[i].node, v->node);
        assert(match <= v->accepted);
        source->rows++;
        if (match <= source->match) continue;
        source->match = match;
        source->rank = source->rows;
        assert(source->rank >= 1 && source->match >= 1);
    }
}

void sources_add(SourceTotals *totals, const SourceReport *reports, int count) {
    int best = 0;
    assert(count <= SOURCES_MAX);
    for (int i = 0; i < count; i++) {
        totals[i].name = reports[i].name;
        totals[i].rows += reports[i].rows;
        if (reports[i].match > reports[best].match) best = i;
    }
    if (count == 0 || reports[best].match == 0) return;
    totals[best].won++;
    totals[best].tokens += reports[best].match;
}
