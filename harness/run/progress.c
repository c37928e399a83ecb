// How far a run is.
//
// Invariants
//  1. A round is stored whole, so a group's round exists if its baseline's answer does.
//  2. A point's passes begin in order; within a pass, NAN marks the prompts without a round.
//  3. A failed point stays out of a group that has begun: it would be measured without its neighbours. In a
//     group without measurements all points may try again.
#include "harness/run/progress.h"

#include "engine/base/memory.h"
#include "simulate/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

// --- when a point is measured often enough ---------------------------------------------------------------

double repeat_error(const double *seconds, int passes, int prompts) {
    double mean = 0, variance = 0;
    if (passes < 2) return INFINITY;
    for (int k = 0; k < prompts; k++) {
        double prompt_mean = 0, squares = 0;
        for (int i = 0; i < passes; i++) prompt_mean += seconds[i * prompts + k] / passes;
        for (int i = 0; i < passes; i++) squares += pow(seconds[i * prompts + k] - prompt_mean, 2);
        mean += prompt_mean;
        variance += squares / (passes - 1);
    }
    return mean > 0 ? sqrt(variance / passes) / mean : 0;
}

bool repeat_is_done(const Measurement *m, int passes, double error, double spent) {
    if (passes < m->passes) return false;
    if (m->stop == STOP_PASSES || passes >= m->most_passes) return true;
    return error <= m->timing_error || (m->time_limit > 0 && spent >= m->time_limit);
}

void repeat_outliers(const double *seconds, int passes, int stride, bool *out) {
    // Five standard deviations of a normal distribution, estimated by the median deviation; but at least two
    // hundredths, since a few repeats may agree by chance.
    static const double FAR = 5 * 1.4826, LEAST = 0.02;
    for (int i = 0; i < passes; i++) out[i] = false;
    if (passes < 3) return;
    LOCAL_MEMORY double *sorted = mem_new((size_t)passes, sizeof *sorted);
    for (int i = 0; i < passes; i++) sorted[i] = seconds[i * stride];
    double middle = median(sorted, (size_t)passes), deviation = median_deviation(sorted, (size_t)passes);
    for (int i = 0; i < passes; i++)
        out[i] = fabs(seconds[i * stride] - middle) > fmax(FAR * deviation, LEAST * middle);
}

// --- a point ---------------------------------------------------------------------------------------------

static void point_progress_check(const PointProgress *p) {
    assert(p->prompts >= 0 && p->passes >= 0);
    assert((size_t)p->passes * (size_t)p->prompts <= p->seconds_capacity);
    assert((size_t)p->passes <= p->flagged_capacity);
    assert(p->tokens >= 0 && p->steps >= 0 && p->diverged >= 0);
}

static double *seconds_at(const PointProgress *p, int pass, int prompt) {
    assert(pass >= 0 && pass < p->passes && prompt >= 0 && prompt < p->prompts);
    return &p->seconds[(size_t)pass * (size_t)p->prompts + (size_t)prompt];
}

void point_progress_add(PointProgress *p, const RoundTimes *t) {
    size_t prompts = (size_t)p->prompts, had = (size_t)p->passes * prompts;
    if (t->pass >= p->passes) {
        p->passes = t->pass + 1;
        mem_grow(&p->seconds, &p->seconds_capacity, (size_t)p->passes * prompts, sizeof *p->seconds);
        mem_grow(&p->flagged, &p->flagged_capacity, (size_t)p->passes, sizeof *p->flagged);
        for (size_t i = had; i < (size_t)p->passes * prompts; i++) p->seconds[i] = NAN;
    }
    *seconds_at(p, t->pass, t->prompt) = t->decode_s;
    p->flagged[t->pass] = p->flagged[t->pass] || t->flagged;
    p->tokens += t->tokens;
    p->steps += t->steps;
    p->decode_s += t->decode_s;
    p->diverged += t->diverged;
    point_progress_check(p);
}

void point_progress_release(PointProgress *p) {
    MEM_FREE(p->seconds, p->flagged);
    *p = (PointProgress){0};
}

bool point_progress_has(const PointProgress *p, int pass, int prompt) {
    return pass < p->passes && !isnan(*seconds_at(p, pass, prompt));
}

// Whether a point is measured, given its first `passes` passes. Flagged passes of a warm point run again, up
// to `reruns` of them.
static bool is_measured(const PointProgress *p, const Measurement *m, int passes, bool warm) {
    int whole = 0, flagged = 0; // passes from the first on that have every prompt
    double spent = 0;
    for (bool all = true; all && whole < passes; whole += all)
        for (int i = 0; all && i < p->prompts; i++) all = point_progress_has(p, whole, i);
    for (int i = 0; i < whole; i++) flagged += p->flagged[i];
    for (int i = 0; i < whole * p->prompts; i++) spent += p->seconds[i];
    int again = !warm ? 0 : flagged < m->reruns ? flagged : m->reruns;
    return repeat_is_done(m, whole - again, repeat_error(p->seconds, whole, p->prompts), spent);
}

// --- reading the ledger ----------------------------------------------------------------------------------

// Turns of a sample follow each other.
static bool take_sample(RunProgress *r, const LedgerSample *s, Error *e) {
    int point = schedule_find(r->schedule, s->point);
    if (point < 0 && r->in->sweep->shards > 1) return true; // another part's
    bool known = point >= 0 && s->prompt >= 0;
    PointProgress *p = known ? &r->points[point] : NULL;
    if (!known || s->prompt >= p->prompts || s->pass < 0)
        return error_system(e, "the store has a sample that this run cannot have");
    double before = point_progress_has(p, s->pass, s->prompt) ? *seconds_at(p, s->pass, s->prompt) : 0;
    RoundTimes t = {.pass = s->pass,
                    .prompt = s->prompt,
                    .tokens = s->tokens,
                    .steps = s->steps,
                    .decode_s = s->decode_s,
                    .flagged = s->flags & FLAGS_FROM_OUTSIDE,
                    .diverged = s->diverged};
    point_progress_add(p, &t);
    *seconds_at(p, s->pass, s->prompt) += before;
    return true;
}

static bool read_ledger(RunProgress *r, Error *e) {
    Rows *samples = ledger_samples(r->ledger->store, r->ledger->run, e);
    bool ok = true;
    for (LedgerSample s; ok && ledger_sample(samples, &s);) ok = take_sample(r, &s, e);
    if (!rows_end(samples, ok, e)) return false;
    Rows *failures = ledger_failures(r->ledger->store, r->ledger->run, e);
    while (rows_next(failures)) {
        int point = schedule_find(r->schedule, (int)rows_int(failures, 0) - 1);
        if (point < 0) continue;
        r->points[point].failed = true;
        snprintf(r->points[point].why, sizeof r->points[point].why, "%s", rows_text(failures, 1));
    }
    return rows_end(failures, true, e);
}

static PointProgress *baseline_of(const RunProgress *r, const Group *g) {
    return &r->points[r->schedule->members[g->baseline]];
}

bool progress_open(RunProgress *r, const Ledger *ledger, Error *e) {
    const Inputs *in = ledger->inputs;
    const Schedule *s = in->schedule;
    *r =
        (RunProgress){.ledger = ledger, .in = in, .schedule = s, .measurement = &in->experiment->measurement};
    r->points = mem_new((size_t)s->point_count, sizeof *r->points);
    for (int i = 0; i < s->point_count; i++)
        r->points[i].prompts = (int)in->datasets[s->points[i].dataset].count;
    if (!read_ledger(r, e)) {
        progress_release(r);
        return false;
    }
    for (const Group *g = s->groups; g < s->groups + s->group_count; g++) {
        const PointProgress *base = baseline_of(r, g);
        for (int i = g->first; i < g->first + g->count; i++) {
            PointProgress *p = &r->points[s->members[i]];
            for (int k = 0; k < p->passes * p->prompts; k++) {
                int pass = k / p->prompts, prompt = k % p->prompts;
                if (point_progress_has(p, pass, prompt) && point_progress_has(base, pass, prompt))
                    p->base_s += base->seconds[k];
            }
            if (base->passes == 0) p->failed = false; // invariant 3
        }
    }
    return true;
}

void progress_release(RunProgress *r) {
    for (int i = 0; r->points && i < r->schedule->point_count; i++) point_progress_release(&r->points[i]);
    mem_free(r->points);
    *r = (RunProgress){0};
}

// --- remaining work --------------------------------------------------------------------------------------

static bool member_wants(const RunProgress *r, const Group *g, int member, int passes) {
    int point = r->schedule->members[member];
    const PointProgress *p = &r->points[point];
    return !p->failed && !inputs_refusal(r->in, point) && !is_measured(p, r->measurement, passes, g->warm);
}

bool progress_wants(const RunProgress *r, const Group *g, int passes, bool *wanted) {
    bool any = false;
    for (int i = 0; i < g->count; i++) {
        int member = g->first + i;
        bool added = member == g->baseline && r->schedule->members[member] >= r->schedule->sweep_count;
        wanted[i] = !added && member_wants(r, g, member, passes);
        any = any || wanted[i];
    }
    return any;
}

bool progress_is_done(const RunProgress *r, const Group *g) {
    LOCAL_MEMORY bool *wanted = mem_new((size_t)g->count, sizeof *wanted);
    bool any = progress_wants(r, g, baseline_of(r, g)->passes, wanted);
    return !any;
}

bool progress_is_left(const RunProgress *r, const Group *g, int member) {
    return member_wants(r, g, g->first + member, baseline_of(r, g)->passes);
}

int progress_next(const RunProgress *r, const Group *g, int pass, int from) {
    int prompts = (int)r->in->datasets[g->dataset].count;
    while (from < prompts && point_progress_has(baseline_of(r, g), pass, from)) from++; // invariant 1
    return from;
}

double progress_tokens(const RunProgress *r, const Group *g) {
    const Point *p = &r->schedule->points[r->schedule->members[g->first]];
    return (double)g->count * (double)r->in->datasets[g->dataset].count * p->settings.max_tokens;
}

double progress_work(const RunProgress *r) {
    const Schedule *s = r->schedule;
    double work = 0;
    for (int i = 0; i < s->group_count; i++) {
        const Group *g = &s->groups[i];
        int prompts = (int)r->in->datasets[g->dataset].count, rounds = 0;
        for (int pass = 0; pass < r->measurement->passes; pass++)
            for (int k = 0; k < prompts; k++) rounds += !point_progress_has(baseline_of(r, g), pass, k);
        work += progress_tokens(r, g) * rounds / (prompts ? prompts : 1);
    }
    return work;
}
