#include "harness/run/baselines.h"

#include "engine/base/memory.h"
#include "results/rows.h"

#include <math.h>
#include <string.h>

// Groups whose baselines answer the same question. Threads, math and where weights lie may differ.
static bool same_question(const Schedule *s, const Group *a, const Group *b) {
    const Point *p = &s->points[s->members[a->baseline]], *q = &s->points[s->members[b->baseline]];
    const Settings *x = &p->settings, *y = &q->settings;
    return p->model == q->model && p->dataset == q->dataset && a->warm == b->warm &&
           strcmp(x->device, y->device) == 0 && x->compute == y->compute &&
           x->sliding_window == y->sliding_window && x->attention == y->attention &&
           schedule_same_output(x, y);
}

// Seconds a token, over all samples; INFINITY where there are none.
static bool read_pace(Ledger *l, int point, double *out, Error *e) {
    Rows *r = rows_open(l->store, "SELECT sum(decode_ns), sum(tokens) FROM sample WHERE point_id = ?1", e);
    if (!r) return false;
    rows_bind_int(r, 1, l->points[point]);
    bool any = rows_next(r) && rows_real(r, 1) > 0;
    *out = any ? rows_real(r, 0) / rows_real(r, 1) : INFINITY;
    return rows_end(r, true, e);
}

static bool choose(Ledger *l, const Group *g, const double *paces, Error *e) {
    const Schedule *s = l->inputs->schedule;
    int best = (int)(g - s->groups), own = s->members[g->baseline];
    for (int i = 0; i < s->group_count; i++)
        if (same_question(s, g, &s->groups[i]) && paces[i] < paces[best]) best = i;
    int fastest = s->members[s->groups[best].baseline];
    if (fastest == own) return true; // as it was opened
    for (int i = g->first; i < g->first + g->count; i++) {
        int point = s->members[i];
        if (!ledger_baseline(l, point, fastest, point == own ? -1 : own, e)) return false;
    }
    return true;
}

bool baselines_choose(Ledger *l, Error *e) {
    const Schedule *s = l->inputs->schedule;
    double *paces = mem_alloc((size_t)s->group_count, sizeof *paces);
    bool ok = paces || error_system(e, "out of memory for %d baselines", s->group_count);
    for (int i = 0; ok && i < s->group_count; i++)
        ok = read_pace(l, s->members[s->groups[i].baseline], &paces[i], e);
    ok = ok && store_begin(l->store, e);
    for (int i = 0; ok && i < s->group_count; i++) ok = choose(l, &s->groups[i], paces, e);
    ok = ok && store_commit(l->store, e);
    if (!ok) store_rollback(l->store);
    mem_free(paces);
    return ok;
}
