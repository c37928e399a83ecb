// Making a schedule. A point joins the first group whose first point it matches: sweeps have few groups.
// Baselines that aren't in the sweep become points after the sweep's. Invariants: every point of the sweep is
// in one group; a group's members are in the order of the sweep, an added baseline last; groups of one setup
// are neighbours.
#include "harness/config/schedule.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char PLAIN[] = "autoregressive"; // a baseline's decoder

typedef struct Maker {
    const Experiment *experiment;
    Schedule *out;
    int *group_of; // (points of the sweep)
} Maker;

// --- groups ----------------------------------------------------------------------------------------------

static bool same_setup(const Point *a, const Point *b) {
    return a->model == b->model && options_same_engine(&a->settings.engine, &b->settings.engine);
}

bool schedule_same_output(const Settings *s, const Settings *t) {
    return s->max_tokens == t->max_tokens && !(s->temperature < t->temperature) &&
           !(s->temperature > t->temperature) && s->top_k == t->top_k && !(s->top_p < t->top_p) &&
           !(s->top_p > t->top_p) && s->seed == t->seed && s->ignore_eos == t->ignore_eos;
}

// A batch runs whole passes, as warm methods do, so one baseline serves both.
static bool runs_warm(const Point *p) { return options_batch(&p->settings.engine) > 1 || p->warm; }

// Until members are laid out, a group's `first` is the number of its first point.
static int find_group(Schedule *s, int point) {
    const Point *p = &s->points[point];
    for (int i = 0; i < s->group_count; i++) {
        const Point *q = &s->points[s->groups[i].first];
        if (same_setup(p, q) && p->dataset == q->dataset &&
            schedule_same_output(&p->settings, &q->settings) && runs_warm(p) == runs_warm(q))
            return i;
    }
    int setup = 0;
    for (; setup < s->setup_count; setup++) {
        Point first = {.model = s->setups[setup].model, .settings = *s->setups[setup].settings};
        if (same_setup(&first, p)) break;
    }
    if (setup == s->setup_count) s->setups[s->setup_count++] = (Setup){p->model, &p->settings};
    s->groups[s->group_count] =
        (Group){.setup = setup, .dataset = p->dataset, .baseline = -1, .first = point, .warm = runs_warm(p)};
    return s->group_count++;
}

// --- baselines -------------------------------------------------------------------------------------------

static bool add_baseline(const Maker *m, const Group *g, int *number, Error *e) {
    Schedule *s = m->out;
    const Point *like = &s->points[g->first];
    Point *p = &s->points[s->point_count];
    *p = (Point){.number = s->sweep->total * (1 + s->sweep->shard) + s->point_count - s->sweep_count,
                 .model = like->model,
                 .dataset = like->dataset,
                 .method = -1,
                 .settings = like->settings};
    options_clear_step(&p->settings.engine); // it has one row
    p->settings.verification = VERIFICATION_TOKEN;
    p->decoder = mem_text(PLAIN, strlen(PLAIN));
    *number = s->point_count++;
    // A warm group's baseline has a hash of its own: it differs from the baseline of other groups. So has
    // that of a part of the sweep: in a merged store, methods are compared with their own part's baseline.
    LOCAL_TEXT text = {0};
    if (g->warm) text_puts(&text, "beside warm methods\n");
    if (s->sweep->shards > 1) text_printf(&text, "part %d of %d\n", s->sweep->shard, s->sweep->shards);
    sweep_describe(m->experiment, p, &text);
    return sha256_bytes(text.data, text.length, p->hash, e);
}

// An added baseline goes last.
static bool lay_out(const Maker *m, int group, Error *e) {
    Schedule *s = m->out;
    Group *g = &s->groups[group];
    int baseline = -1, own = -1, count = 0;
    size_t n = strlen(PLAIN);
    for (int i = 0; i < s->sweep_count; i++) {
        const char *decoder = s->points[i].decoder;
        if (m->group_of[i] != group) continue;
        if (baseline < 0 && strncmp(decoder, PLAIN, n) == 0 && strchr(":", decoder[n])) baseline = count;
        count++;
    }
    if (baseline < 0 && !add_baseline(m, g, &own, e)) return false;
    g->first = s->member_count;
    g->baseline = g->first + (baseline < 0 ? count : baseline);
    for (int i = 0; i < s->sweep_count; i++)
        if (m->group_of[i] == group) s->members[s->member_count++] = i;
    if (own >= 0) s->members[s->member_count++] = own;
    g->count = s->member_count - g->first;
    return true;
}

// --- all of it -------------------------------------------------------------------------------------------

static void schedule_check(const Schedule *s) {
    assert(s->member_count == s->point_count);
    for (int i = 1; i < s->point_count; i++) assert(s->points[i - 1].number < s->points[i].number);
    for (int i = 0; i < s->group_count; i++) {
        const Group *g = &s->groups[i];
        assert(g->count > 0 && g->baseline >= g->first && g->baseline < g->first + g->count);
        assert(i == 0 || g[-1].setup <= g->setup);
        for (int k = g->first; k < g->first + g->count; k++)
            assert(s->members[k] >= 0 && s->members[k] < s->point_count &&
                   s->members[k] >= s->members[g->first]);
    }
}

bool schedule_make(const Experiment *x, const Sweep *sweep, Schedule *out, Error *e) {
    size_t most = (size_t)sweep->count;
    *out = (Schedule){.points = mem_new(2 * most, sizeof *out->points),
                      .setups = mem_new(most, sizeof *out->setups),
                      .groups = mem_new(most, sizeof *out->groups),
                      .members = mem_new(2 * most, sizeof *out->members),
                      .point_count = sweep->count,
                      .sweep_count = sweep->count,
                      .sweep = sweep};
    Maker m = {.experiment = x, .out = out, .group_of = mem_new(most, sizeof *m.group_of)};
    memcpy(out->points, sweep->points, most * sizeof *out->points);
    for (int i = 0; i < sweep->count; i++) m.group_of[i] = find_group(out, i);
    bool ok = true;
    for (int i = 0; ok && i < out->group_count; i++) ok = lay_out(&m, i, e);
    // A setup's groups become neighbours, so that its model is opened once.
    for (int i = 1; ok && i < out->group_count; i++) {
        Group g = out->groups[i];
        int at = i;
        for (; at > 0 && out->groups[at - 1].setup > g.setup; at--) out->groups[at] = out->groups[at - 1];
        out->groups[at] = g;
    }
    mem_free(m.group_of);
    if (ok) schedule_check(out);
    else schedule_release(out);
    return ok;
}

static int by_number(const void *key, const void *point) {
    return *(const int *)key - ((const Point *)point)->number;
}

int schedule_find(const Schedule *s, int number) {
    const Point *p = bsearch(&number, s->points, (size_t)s->point_count, sizeof *s->points, by_number);
    return p ? (int)(p - s->points) : -1;
}

void schedule_shards(const Schedule *s, const double *cost, int shards, int *shard_of) {
    double all = 0, before = 0;
    int left = s->sweep_count, last = 0, next = 0; // the part of the last point; the first one without points
    for (int i = 0; i < s->sweep_count; i++) all += cost[i];
    for (int i = 0; i < s->member_count; i++) {
        int point = s->members[i];
        if (point >= s->sweep_count) continue;
        int shard = (int)((before + cost[point] / 2) / all * shards);
        // None is skipped, and each of the rest gets a point as long as there are any.
        if (shard > next || left <= shards - next) shard = next;
        shard_of[point] = last = shard > last ? shard : last;
        next = last + 1 < shards ? last + 1 : last;
        before += cost[point];
        left--;
    }
}

void schedule_release(Schedule *s) {
    for (int i = s->sweep_count; i < s->point_count; i++) mem_free(s->points[i].decoder);
    MEM_FREE(s->points, s->setups, s->groups, s->members);
    *s = (Schedule){0};
}

void schedule_order(int count, int round, int *order) {
    assert(count >= 1 && round >= 0);
    int turn = round % count;
    for (int i = 0; i < count; i++) order[i] = (round % 2 ? turn - i + count : turn + i) % count;
}
