#include "harness/run/round.h"

#include "engine/base/memory.h"
#include "results/record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const Point *point_of(const GroupRun *g, int seat) {
    return &g->ledger->inputs->schedule->points[g->seats[seat].point];
}

static const DatasetPrompt *prompt_of(const GroupRun *g, int prompt) {
    return &g->ledger->inputs->datasets[g->group->dataset].prompts[prompt];
}

// --- what is measured and not stored yet -----------------------------------------------------------------

static LedgerEntry *add_entry(GroupRun *g, int seat, int pass, int prompt, int position, Error *e) {
    void *entries = g->entries;
    Said *said = mem_alloc(1, sizeof *said);
    if (!said || !mem_grow(&entries, &g->entry_capacity, g->entry_count + 1, sizeof *g->entries)) {
        mem_free(said);
        error_system(e, "out of memory for a round");
        return NULL;
    }
    g->entries = entries;
    LedgerEntry *entry = &g->entries[g->entry_count++];
    *entry = (LedgerEntry){.point = g->seats[seat].point,
                           .pass = pass,
                           .dataset = g->group->dataset,
                           .prompt = prompt,
                           .position = position,
                           .said = said,
                           .diverged = -1};
    return entry;
}

static void drop_entry(GroupRun *g, size_t i) {
    said_release(g->entries[i].said);
    mem_free(g->entries[i].said);
    g->entries[i] = g->entries[--g->entry_count];
}

void round_forget(GroupRun *g) {
    while (g->entry_count) drop_entry(g, g->entry_count - 1);
}

static PointState *state_of(const GroupRun *g, int point) {
    for (int i = 0; i < g->group->count; i++)
        if (g->seats[i].point == point) return g->seats[i].state;
    return NULL;
}

bool round_store(GroupRun *g, Error *e) {
    for (size_t i = g->entry_count; i-- > 0;)
        if (state_of(g, g->entries[i].point)->failed) drop_entry(g, i);
    bool ok = g->entry_count == 0 || ledger_add(g->ledger, g->entries, (int)g->entry_count, g->tokenizer, e);
    for (size_t i = 0; ok && i < g->entry_count; i++)
        reporter_sample(g->reporter, g->ledger->inputs->schedule->points[g->entries[i].point].hash,
                        &g->entries[i]);
    round_forget(g);
    return ok;
}

// --- failures --------------------------------------------------------------------------------------------

static bool fail_one(GroupRun *g, int seat, const char *why, Error *e) {
    Seat *s = &g->seats[seat];
    if (s->state->failed) return true;
    s->state->failed = true;
    snprintf(s->state->why, sizeof s->state->why, "%s", why);
    reporter_failure(g->reporter, text_get(&s->label), why);
    return ledger_failure(g->ledger, s->point, why, e);
}

bool round_fail(GroupRun *g, int seat, const char *why, Error *e) {
    if (!fail_one(g, seat, why, e)) return false;
    for (int i = 0; seat == g->baseline && i < g->group->count; i++)
        if (!fail_one(g, i, "its baseline failed", e)) return false;
    return true;
}

// --- a round ---------------------------------------------------------------------------------------------

static bool answer(GroupRun *g, int seat, int pass, int prompt, int position, Error *e) {
    const DatasetPrompt *p = prompt_of(g, prompt);
    Ask ask = {(const char *const *)p->turns, p->turn_count, prompt};
    Error why = {0};
    LedgerEntry *entry = add_entry(g, seat, pass, prompt, position, e);
    if (!entry) return false;
    reporter_method(g->reporter, position, g->group->count, text_get(&g->seats[seat].label),
                    point_of(g, seat)->settings.max_tokens);
    if (measure(&g->measuring, &g->seats[seat].method, &point_of(g, seat)->settings, &ask, entry->said, &why))
        return true;
    drop_entry(g, g->entry_count - 1);
    error_within(&why, "prompt '%s'", p->id);
    if (why.kind == ERROR_INPUT) return round_fail(g, seat, why.text, e);
    *e = why;
    return false;
}

static LedgerEntry *entry_of(GroupRun *g, size_t from, int seat) {
    for (size_t i = from; i < g->entry_count; i++)
        if (g->entries[i].point == g->seats[seat].point) return &g->entries[i];
    return NULL;
}

// Where outputs are drawn, methods draw in their own ways: texts differ, and distributions are verify's.
static bool compare(GroupRun *g, size_t from, Error *e) {
    const LedgerEntry *base = entry_of(g, from, g->baseline);
    for (int i = 0; base && i < g->group->count; i++) {
        LedgerEntry *entry = entry_of(g, from, i);
        if (!entry || i == g->baseline || point_of(g, i)->settings.temperature > 0) continue;
        if (!measure_compare(g->measuring.target, base->said, entry->said, &entry->diverged,
                             &entry->divergence, e))
            return false;
        if (entry->diverged >= 0)
            reporter_divergence(g->reporter, text_get(&g->seats[i].label), prompt_of(g, entry->prompt)->id,
                                entry);
    }
    return true;
}

static RoundTimes times_of(const LedgerEntry *entry, double *all) {
    RoundTimes t = {.pass = entry->pass, .prompt = entry->prompt, .diverged = entry->diverged >= 0};
    for (int i = 0; i < entry->said->count; i++) {
        const SaidTurn *turn = &entry->said->turns[i];
        t.tokens += turn->result.tokens;
        t.steps += turn->result.steps;
        t.decode_s += said_decode_seconds(&turn->result);
        t.flagged = t.flagged || turn->flags & (FLAG_LOAD | FLAG_CLOCK | FLAG_THROTTLED);
        *all += turn->result.prefill_s + said_decode_seconds(&turn->result);
    }
    return t;
}

static bool count(GroupRun *g, size_t from, Error *e) {
    const LedgerEntry *base = entry_of(g, from, g->baseline);
    double all = 0, ignored = 0, base_s = base ? times_of(base, &ignored).decode_s : 0;
    for (int i = 0; i < g->group->count; i++) {
        const LedgerEntry *entry = entry_of(g, from, i);
        if (!entry) continue;
        RoundTimes t = times_of(entry, &all);
        if (!state_add(g->seats[i].state, &t, e)) return false;
        g->seats[i].state->base_s += base_s;
    }
    g->decode_s += all;
    return true;
}

bool round_run(GroupRun *g, int pass, int prompt, const bool *asked, Error *e) {
    int n = g->group->count;
    int *order = mem_alloc((size_t)n, sizeof *order);
    size_t from = g->entry_count;
    if (!order) return error_system(e, "out of memory for a round");
    schedule_order(n, pass + prompt, order);
    bool ok = true;
    for (int i = 0; ok && i < n; i++) {
        const Seat *s = &g->seats[order[i]];
        bool takes_part = !asked || asked[order[i]] || order[i] == g->baseline;
        if (s->open && !s->state->failed && takes_part) ok = answer(g, order[i], pass, prompt, i, e);
    }
    mem_free(order);
    return ok && compare(g, from, e) && count(g, from, e);
}
