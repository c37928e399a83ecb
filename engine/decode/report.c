// Read off the tree when the verifier has walked it, before anything is committed.
#include "engine/decode/report.h"

static void count_nodes(const Tree *t, StepReport *r) {
    r->rows = t->count;
    r->asked = t->asked;
    r->parts = t->parts;
    for (int i = 0; i < t->parts; i++)
        r->part_rows[i] = (i + 1 < t->parts ? t->part_root[i + 1] : t->count) - t->part_root[i];
    for (int i = 0; i < t->count; i++) {
        if (t->flags[i] & NODE_CANDIDATE && t->depth[i] > r->depth) r->depth = t->depth[i];
        r->probes += (t->flags[i] & NODE_PROBE) != 0;
        r->candidates += (t->flags[i] & NODE_CANDIDATE) != 0;
    }
}

// The only proposal at a node, or TREE_NONE.
static int only_child(const Tree *t, int node) {
    int first = t->first_proposal[node];
    return first != TREE_NONE && t->proposals[first].next == TREE_NONE ? t->proposals[first].child
                                                                       : TREE_NONE;
}

static void follow_chain(const Session *s, StepReport *r) {
    const Tree *t = &s->tree;
    for (int node = 0, child; (child = only_child(t, node)) != TREE_NONE; node = child) {
        if (r->chain < 64 && session_argmax(s, node) == t->token[child]) r->agrees |= 1ull << r->chain;
        r->chain++;
    }
}

void report_tree(const Session *target, const Verdict *v, StepReport *r) {
    count_nodes(&target->tree, r);
    follow_chain(target, r);
    r->accepted = v->accepted;
    r->tried = v->tried;
}

StepReport report_prefill(int rows, const PassLog *log, double forward_s, double begin_s) {
    return (StepReport){.number = -1,
                        .note.kind = STEP_PREFILL,
                        .rows = rows,
                        .asked = rows,
                        .parts = 1,
                        .part_rows = {rows},
                        .passes = log->passes,
                        .pass_count = log->count,
                        .propose_s = begin_s,
                        .forward_s = forward_s};
}
