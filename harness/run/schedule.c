// Groups are found by asking every point whether it can stand beside the first of each group that there is:
// sweeps have few groups. Baselines that the sweep lacks become points of their own after the sweep's.
#include "harness/run/schedule.h"

#include "engine/base/memory.h"

#include <string.h>

typedef struct Maker {
    const Experiment *experiment;
    Schedule *out;
    int *group_of; // (points of the sweep)
} Maker;

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for a schedule"); }

bool schedule_is_warm(const char *decoder) {
    static const char KEY[] = "warm=on";
    const size_t n = sizeof KEY - 1;
    for (const char *p = decoder; (p = strstr(p, KEY)); p += n) {
        bool begins = p > decoder && !strchr("abcdefghijklmnopqrstuvwxyz_", p[-1]);
        if (begins && !strchr("abcdefghijklmnopqrstuvwxyz_0123456789", p[n] ? p[n] : ',')) return true;
    }
    return false;
}

static bool is_autoregressive(const char *decoder) {
    static const char NAME[] = "autoregressive";
    const size_t n = sizeof NAME - 1;
    return strncmp(decoder, NAME, n) == 0 && (decoder[n] == 0 || decoder[n] == ':');
}

// --- what can stand side by side -------------------------------------------------------------------------

// Layout and merging are of the step, not of the model.
static bool same_setup(const Point *a, const Point *b) {
    const Settings *s = &a->settings, *t = &b->settings;
    return a->model == b->model && strcmp(s->device, t->device) == 0 && s->math == t->math &&
           s->compute == t->compute && s->threads == t->threads && s->weights == t->weights &&
           s->attention == t->attention && s->sliding_window == t->sliding_window;
}

bool schedule_same_output(const Settings *s, const Settings *t) {
    return s->max_tokens == t->max_tokens && !(s->temperature < t->temperature) &&
           !(s->temperature > t->temperature) && s->top_k == t->top_k && !(s->top_p < t->top_p) &&
           !(s->top_p > t->top_p) && s->seed == t->seed && s->ignore_eos == t->ignore_eos;
}

static bool same_group(const Point *a, const Point *b) {
    return same_setup(a, b) && a->dataset == b->dataset && schedule_same_output(&a->settings, &b->settings) &&
           schedule_is_warm(a->decoder) == schedule_is_warm(b->decoder);
}

static int find_setup(Schedule *s, const Point *p) {
    for (int i = 0; i < s->setup_count; i++) {
        Point first = {.model = s->setups[i].model, .settings = *s->setups[i].settings};
        if (same_setup(&first, p)) return i;
    }
    s->setups[s->setup_count] = (Setup){p->model, &p->settings};
    return s->setup_count++;
}

// `first` of a group is the number of its first point, until members are laid out.
static int find_group(Schedule *s, int point) {
    const Point *p = &s->points[point];
    for (int i = 0; i < s->group_count; i++)
        if (same_group(&s->points[s->groups[i].first], p)) return i;
    s->groups[s->group_count] = (Group){.setup = find_setup(s, p),
                                        .dataset = p->dataset,
                                        .baseline = -1,
                                        .first = point,
                                        .warm = schedule_is_warm(p->decoder)};
    return s->group_count++;
}

// --- baselines -------------------------------------------------------------------------------------------

// The hash of a warm group's baseline says so: it is not the one that other groups have.
static bool hash_baseline(const Experiment *x, Point *p, bool warm, Error *e) {
    Text text = {0};
    if (warm) text_puts(&text, "beside warm methods\n");
    sweep_describe(x, p, &text);
    bool ok = text.failed ? out_of_memory(e) : sha256_bytes(text.data, text.length, p->hash, e);
    text_release(&text);
    return ok;
}

static bool add_baseline(const Maker *m, const Group *g, int *number, Error *e) {
    Schedule *s = m->out;
    const Point *like = &s->points[g->first];
    Point *p = &s->points[s->point_count];
    static const char NAME[] = "autoregressive";
    *p = (Point){.model = like->model, .dataset = like->dataset, .method = -1, .settings = like->settings};
    p->settings.layout = LAYOUT_TREE; // it has one row: none of these means anything to it
    p->settings.merge = true;
    p->settings.max_rows = 0;
    p->decoder = mem_text(NAME, sizeof NAME - 1);
    if (!p->decoder) return out_of_memory(e);
    *number = s->point_count++;
    return hash_baseline(m->experiment, p, g->warm, e);
}

static int count_members(const Maker *m, int group, int *baseline) {
    int count = 0;
    *baseline = -1;
    for (int i = 0; i < m->out->sweep_count; i++) {
        if (m->group_of[i] != group) continue;
        if (*baseline < 0 && is_autoregressive(m->out->points[i].decoder)) *baseline = count;
        count++;
    }
    return count;
}

// A baseline of its own stands last.
static bool lay_out(const Maker *m, int group, Error *e) {
    Schedule *s = m->out;
    Group *g = &s->groups[group];
    int baseline, own = -1, count = count_members(m, group, &baseline);
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

// A setup's groups stand together, so that its model is opened once.
static bool lay_out_all(const Maker *m, Error *e) {
    Schedule *s = m->out;
    for (int i = 0; i < s->group_count; i++)
        if (!lay_out(m, i, e)) return false;
    for (int i = 1; i < s->group_count; i++) {
        Group g = s->groups[i];
        int at = i;
        for (; at > 0 && s->groups[at - 1].setup > g.setup; at--) s->groups[at] = s->groups[at - 1];
        s->groups[at] = g;
    }
    return true;
}

static bool make(Maker *m, const Sweep *sweep, Error *e) {
    Schedule *s = m->out;
    size_t most = (size_t)sweep->count;
    s->points = mem_alloc(2 * most, sizeof *s->points);
    s->setups = mem_alloc(most, sizeof *s->setups);
    s->groups = mem_alloc(most, sizeof *s->groups);
    s->members = mem_alloc(2 * most, sizeof *s->members);
    m->group_of = mem_alloc(most, sizeof *m->group_of);
    if (!s->points || !s->setups || !s->groups || !s->members || !m->group_of) return out_of_memory(e);
    memcpy(s->points, sweep->points, most * sizeof *s->points);
    s->point_count = s->sweep_count = sweep->count;
    for (int i = 0; i < sweep->count; i++) m->group_of[i] = find_group(s, i);
    return lay_out_all(m, e);
}

bool schedule_make(const Experiment *x, const Sweep *sweep, Schedule *out, Error *e) {
    *out = (Schedule){0};
    Maker m = {.experiment = x, .out = out};
    bool ok = make(&m, sweep, e);
    mem_free(m.group_of);
    if (!ok) schedule_release(out);
    return ok;
}

void schedule_release(Schedule *s) {
    for (int i = s->sweep_count; i < s->point_count; i++) mem_free(s->points[i].decoder);
    mem_free(s->points);
    mem_free(s->setups);
    mem_free(s->groups);
    mem_free(s->members);
    *s = (Schedule){0};
}

void schedule_order(int count, int round, int *order) {
    int turn = round % count;
    for (int i = 0; i < count; i++) order[i] = (round % 2 ? turn - i + count : turn + i) % count;
}
