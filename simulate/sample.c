#include "simulate/sample.h"

#include "engine/base/memory.h"

#include <math.h>
#include <string.h>

static bool open_point(const Points *points, int at, const FitOptions *o, SamplePoint *p) {
    PointAt point = points->points[at];
    *p = (SamplePoint){.at = point};
    p->law = (Law){.f = 1, .gamma = point.N - 1, .b = point.G, .output = o->output};
    p->fitted = o->law == FIT_CORRECTED || point.W == point.G;
    if (o->bonus_dropped) p->law.terms |= LAW_BONUS_DROPPED;
    if (o->output > 0) {
        p->law.terms |= LAW_FILLING;
        p->law.filling = point.N - 2;
    }
    if (points->columns & POINTS_ACCEPTED && !(p->accepted = mem_alloc((size_t)point.N, sizeof(double))))
        return false;
    if (o->law == FIT_PAPER || !(points->columns & POINTS_CANDIDATES)) return true;
    p->law.terms |= LAW_CANDIDATES;
    p->law.share_count = POINTS_MOST_CANDIDATES + 1;
    p->law.share = p->share = mem_alloc(POINTS_MOST_CANDIDATES + 1, sizeof(double));
    return p->share != NULL;
}

double sample_most(const SamplePoint *p) {
    return p->law.terms & LAW_BONUS_DROPPED ? p->law.gamma : p->law.gamma + 1;
}

static bool check_point(const SamplePoint *p, const FitOptions *o, Error *e) {
    double most = sample_most(p);
    if (o->output > 0 && o->output < p->law.filling)
        return error_input(e, "fit: outputs of %g tokens are over before the %d filling steps of N = %d",
                           o->output, p->law.filling, p->at.N);
    if (p->tokens <= most + 1e-9) return true;
    return error_input(e, "fit: N %d, W %d, G %d: S is %g, but a step emits %g tokens at most%s%s", p->at.N,
                       p->at.W, p->at.G, p->S, most, o->bonus_dropped ? " where the bonus is dropped" : "",
                       o->output > 0 ? ", and filling steps one" : "");
}

bool sample_open(const Points *points, const FitOptions *o, Sample *out, Error *e) {
    *out = (Sample){.points = mem_alloc((size_t)points->count, sizeof *out->points)};
    if (!out->points) return error_system(e, "fit: out of memory");
    for (int i = 0; i < points->count; i++) {
        out->count++;
        if (!open_point(points, i, o, &out->points[i])) return error_system(e, "fit: out of memory");
        out->fitted += out->points[i].fitted;
    }
    sample_weigh(out, points, NULL);
    for (int i = 0; i < out->count; i++)
        if (!check_point(&out->points[i], o, e)) return false;
    return true;
}

void sample_release(Sample *s) {
    for (int i = 0; i < s->count; i++) {
        mem_free(s->points[i].share);
        mem_free(s->points[i].accepted);
    }
    mem_free(s->points);
    *s = (Sample){0};
}

// tokens = law_without_filling(S), so the error of S grows by d tokens / d S on its way.
void sample_move(SamplePoint *p, double S) {
    const Law *law = &p->law;
    double slope = 1;
    p->S = p->tokens = S;
    if (law->terms & LAW_FILLING && law->filling > 0) {
        p->tokens = law_without_filling(S, law->filling, law->output);
        slope = p->tokens * p->tokens * law->output / ((law->output - law->filling) * S * S);
    }
    double error = slope * (p->se > 0 ? p->se : 1);
    p->weight = 1 / (error * error);
}

static void sum_hits(SamplePoint *p) {
    p->hits = 0;
    for (int i = 1; p->accepted && i <= p->law.gamma; i++) p->hits += p->accepted[i];
}

void sample_count(SamplePoint *p, const double *accepted) {
    memcpy(p->accepted, accepted, (size_t)p->at.N * sizeof *accepted);
    sum_hits(p);
}

static void add_histogram(double *sum, int most, const Histogram *h, double weight) {
    for (int i = 0; i <= most && i <= h->most; i++) sum[i] += weight * h->count[i];
}

static void weigh_point(SamplePoint *p, const PointRow *rows, int prompts, const double *weights) {
    double steps = 0, tokens = 0, total = 0;
    if (p->accepted) memset(p->accepted, 0, (size_t)p->at.N * sizeof *p->accepted);
    if (p->share) memset(p->share, 0, (POINTS_MOST_CANDIDATES + 1) * sizeof *p->share);
    for (int i = 0; i < prompts; i++) {
        double weight = weights ? weights[i] : 1;
        if (weight == 0) continue;
        steps += weight * rows[i].steps;
        tokens += weight * rows[i].steps * rows[i].S;
        if (p->accepted) add_histogram(p->accepted, p->law.gamma, &rows[i].accepted, weight);
        if (p->share) add_histogram(p->share, POINTS_MOST_CANDIDATES, &rows[i].candidates, weight);
    }
    sum_hits(p);
    for (int c = 0; p->share && c <= POINTS_MOST_CANDIDATES; c++) total += p->share[c];
    // Laws sum over the counts up to the last that a step had, which is far below the most there can be.
    for (int c = 0; p->share && c <= POINTS_MOST_CANDIDATES; c++)
        if ((p->share[c] /= total) > 0) p->law.share_count = c + 1;
    p->se = prompts == 1 ? rows[0].se : 0; // of several prompts, the spread over them says it
    sample_move(p, tokens / steps);
}

void sample_weigh(Sample *s, const Points *points, const double *weights) {
    for (int i = 0; i < s->count; i++)
        weigh_point(&s->points[i], &points->rows[i * points->prompts], points->prompts, weights);
}

double sample_gain(const SamplePoint *p, double alpha) {
    Law law = p->law;
    law.alpha = alpha;
    return law_good_tokens(&law) - 1;
}

double sample_predict(const SamplePoint *p, double alpha, double phi) {
    Law law = p->law;
    law.alpha = alpha, law.f = 1 / phi;
    return law_compression(&law);
}
