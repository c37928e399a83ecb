// Lines and events of a run. Invariant: the terminal's line is cleared before anything else is printed, on
// either stream. Nothing here fails: a report that can't be written doesn't stop a run.
#include "harness/run/run.h"

#include "engine/base/json.h"
#include "harness/cli/terminal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double now(void) { return clock_now(clock_monotonic()); }

static void reporter_check(const Reporter *r) {
    const ReporterPlace *p = &r->place;
    assert(r->done >= 0 && r->round_work >= 0 && r->rounds_s >= 0);
    assert(p->methods == 0 ? p->method == 0 : p->method >= 0 && p->method < p->methods);
}

void reporter_begin(Reporter *r, bool json, int points, double work, bool (*interrupted)(void)) {
    *r = (Reporter){.json = json, .points = points, .work = work, .interrupted = interrupted};
    line_begin(&r->line, !json);
}

// "37%, 2 min left, points 1-7 of 14". Before the first round ends, the time of most methods isn't known.
static void write_whole(const Reporter *r, double share, Text *out) {
    const ReporterPlace *p = &r->place;
    // Of the open round: whole methods, and the share of the current one.
    double in_round = p->methods > 0 ? (p->method + share) / p->methods : 0;
    double done = r->done + r->round_work * in_round;
    double took = r->rounds_s + (r->round_work > 0 ? now() - r->round_began : 0);
    if (r->work > 0) text_printf(out, "%.0f%%, ", 100 * fmin(done / r->work, 1));
    if (r->done > 0 && r->work > done && took >= 1) {
        line_left(took * (r->work - done) / done, out);
        text_puts(out, ", ");
    }
    text_printf(out, "points %d-%d of %d", p->first_point, p->last_point, r->points);
}

static void write_place(const Reporter *r, double share, Text *out) {
    const ReporterPlace *p = &r->place;
    if (!p->phase)
        text_printf(out, ", %s, %s %d/%d, pass %d", p->model, p->dataset, p->prompt + 1, p->prompts,
                    p->pass + 1);
    if (p->methods) text_printf(out, ", method %d/%d", p->method + 1, p->methods);
    if (p->tokens) text_printf(out, ", token %.0f/%d", share * p->tokens, p->tokens);
    if (p->phase) return;
    if (p->label) text_printf(out, ", %s", p->label);
    if (p->of && !isnan(p->S)) text_printf(out, ", %s: S %.2f", p->of, p->S);
    if (p->of && !isnan(p->speedup)) text_printf(out, ", speedup %.2f", p->speedup);
}

// The most important parts come first: a narrow terminal cuts the end.
static void write_line(Reporter *r, const char *what, double share) {
    LOCAL_TEXT text = {0};
    bool decoding = !what || strcmp(what, DECODING) == 0;
    double decoded = decoding ? share : 0;
    if (r->place.phase) text_puts(&text, r->place.phase);
    else write_whole(r, decoded, &text);
    if (!decoding) {
        text_puts(&text, ": ");
        line_share(&r->line, what, share, &text);
    }
    write_place(r, decoded, &text);
    line_show(&r->line, text_get(&text));
}

void reporter_place(Reporter *r, const ReporterPlace *place) {
    r->place = *place;
    reporter_check(r);
    if ((r->line.terminal && place->phase) || line_due(&r->line)) write_line(r, NULL, 0);
}

void reporter_method(Reporter *r, int method, int methods, const char *label, int tokens) {
    ReporterPlace place = r->place;
    place.method = method;
    place.methods = methods;
    place.label = label;
    place.tokens = tokens;
    reporter_place(r, &place);
}

void reporter_round(Reporter *r, double work) {
    r->round_work = work;
    r->round_began = now();
}

void reporter_round_end(Reporter *r) {
    r->done += r->round_work;
    r->rounds_s += now() - r->round_began;
    r->round_work = 0;
    reporter_check(r);
}

static bool show(void *state, const char *what, double share) {
    Reporter *r = state;
    if (what && line_due(&r->line)) write_line(r, what, share);
    return !r->interrupted || !r->interrupted();
}

Progress reporter_progress(Reporter *r) { return (Progress){show, r}; }

void reporter_clear(Reporter *r) { line_clear(&r->line); }

// Takes ownership of the object.
static void put_event(json_t *event) {
    json_print(event, JSON_COMPACT, stdout);
    fflush(stdout);
}

void reporter_sample(Reporter *r, const char *hash, const Answer *answer) {
    for (int i = 0; r->json && i < answer->count; i++) {
        const AnswerTurn *t = &answer->turns[i];
        put_event(json_pack("{s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f}", "event", "sample",
                            "point", answer->point + 1, "hash", hash, "pass", answer->pass, "prompt",
                            answer->prompt, "turn", i, "position", answer->position, "tokens",
                            t->result.tokens, "flags", t->flags, "S", t->result.S, "prefill_s",
                            t->result.prefill_s, "decode_s", answer_decode_seconds(&t->result)));
    }
}

void reporter_divergence(Reporter *r, const char *label, const char *prompt, const Answer *answer) {
    const Divergence *d = &answer->divergence;
    reporter_clear(r);
    if (!r->json)
        fprintf(stderr,
                "not the baseline's text: %s, prompt '%s', turn %d, output token %d: wanted %d, got %d; the "
                "two best logits differ by %g\n",
                SHOWN(label), SHOWN(prompt), answer->diverged + 1, d->position + 1, d->want, d->got,
                (double)d->margin);
    else
        put_event(json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:i, s:f}", "event", "divergence", "point",
                            answer->point + 1, "label", label, "prompt", prompt, "turn", answer->diverged,
                            "position", d->position, "wanted", d->want, "got", d->got, "margin",
                            (double)d->margin));
}

void reporter_stray(Reporter *r, int point, int count, const char *prompt, int pass) {
    reporter_clear(r);
    if (!r->json)
        fprintf(stderr,
                "not the same text again: %d outputs of the baseline, point %d, the first for prompt '%s' in "
                "pass %d: weights changed, memory is faulty, or a kernel isn't deterministic\n",
                count, point + 1, SHOWN(prompt), pass + 1);
    else
        put_event(json_pack("{s:s, s:i, s:i, s:s, s:i}", "event", "stray", "point", point + 1, "outputs",
                            count, "prompt", prompt, "pass", pass));
}

void reporter_failure(Reporter *r, const char *label, const char *why) {
    reporter_clear(r);
    if (r->json) put_event(json_pack("{s:s, s:s, s:s}", "event", "failure", "label", label, "why", why));
    else fprintf(stderr, "failed, and left out from here on: %s: %s\n", SHOWN(label), SHOWN(why));
}

void reporter_end(Reporter *r, const char *result, int points, int failed, int diverged, double seconds,
                  double harness_s) {
    reporter_clear(r);
    if (r->json)
        put_event(json_pack("{s:s, s:s, s:i, s:i, s:i, s:f, s:f}", "event", "end", "result", result, "points",
                            points, "failed", failed, "diverged", diverged, "seconds", seconds, "harness_s",
                            harness_s));
}
