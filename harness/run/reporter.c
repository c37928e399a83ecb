#include "harness/run/reporter.h"

#include "engine/base/json.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

void reporter_begin(Reporter *r, bool json, int points, double work) {
    *r = (Reporter){.terminal = isatty(STDERR_FILENO) && !json,
                    .json = json,
                    .points = points,
                    .began = clock_now(clock_monotonic()),
                    .work = work};
}

static void print_left(double seconds) {
    if (seconds < 90) fprintf(stderr, "%.0f s left", seconds);
    else if (seconds < 5400) fprintf(stderr, "%.0f min left", seconds / 60);
    else fprintf(stderr, "%.1f h left", seconds / 3600);
}

void reporter_line(const Reporter *r, const ReporterLine *line) {
    if (!r->terminal) return;
    double gone = clock_now(clock_monotonic()) - r->began;
    fprintf(stderr, "\r\033[Kpoints %d-%d of %d, %s, %s %d/%d, pass %d", line->first_point, line->last_point,
            r->points, line->model, line->dataset, line->prompt + 1, line->prompts, line->pass + 1);
    if (!isnan(line->S)) fprintf(stderr, ", %s: S %.2f", line->label, line->S);
    if (!isnan(line->speedup)) fprintf(stderr, ", speedup %.2f", line->speedup);
    if (r->done > 0 && r->work > r->done) {
        fputs(", ", stderr);
        print_left(gone * (r->work - r->done) / r->done);
    }
}

void reporter_clear(const Reporter *r) {
    if (r->terminal) fputs("\r\033[K", stderr);
}

// Takes the object.
static void put_event(json_t *event) {
    json_print(event, JSON_COMPACT, stdout);
    fflush(stdout);
}

void reporter_sample(const Reporter *r, const char *hash, const LedgerEntry *entry) {
    for (int i = 0; r->json && i < entry->said->count; i++) {
        const SaidTurn *t = &entry->said->turns[i];
        put_event(json_pack("{s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f}", "event", "sample",
                            "point", entry->point + 1, "hash", hash, "pass", entry->pass, "prompt",
                            entry->prompt, "turn", i, "position", entry->position, "tokens", t->result.tokens,
                            "flags", t->flags, "S", t->result.S, "prefill_s", t->result.prefill_s, "decode_s",
                            said_decode_seconds(&t->result)));
    }
}

void reporter_divergence(const Reporter *r, const char *label, const char *prompt, const LedgerEntry *entry) {
    const Divergence *d = &entry->divergence;
    reporter_clear(r);
    if (!r->json)
        fprintf(stderr,
                "not the baseline's text: %s, prompt '%s', turn %d, output token %d: wanted %d, got %d; the "
                "two best logits differ by %g\n",
                label, prompt, entry->diverged + 1, d->position + 1, d->want, d->got, (double)d->margin);
    else
        put_event(json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:i, s:f}", "event", "divergence", "point",
                            entry->point + 1, "label", label, "prompt", prompt, "turn", entry->diverged,
                            "position", d->position, "wanted", d->want, "got", d->got, "margin",
                            (double)d->margin));
}

void reporter_failure(const Reporter *r, const char *label, const char *why) {
    reporter_clear(r);
    if (r->json) put_event(json_pack("{s:s, s:s, s:s}", "event", "failure", "label", label, "why", why));
    else fprintf(stderr, "failed, and left out from here on: %s: %s\n", label, why);
}

void reporter_end(const Reporter *r, const char *result, int points, int failed, int diverged, double seconds,
                  double harness_s) {
    reporter_clear(r);
    if (r->json)
        put_event(json_pack("{s:s, s:s, s:i, s:i, s:i, s:f, s:f}", "event", "end", "result", result, "points",
                            points, "failed", failed, "diverged", diverged, "seconds", seconds, "harness_s",
                            harness_s));
}
