// Reports of steps as the store's rows: the only place that knows both.
#include "harness/run/ledger.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "harness/run/repetition.h"
#include "harness/run/scores.h"

#include <string.h>

// Room for the rows of some samples; freed together.
typedef struct Batch {
    StoreSample *samples;
    StoreDivergence *divergences; // (samples)
    StoreOutput *outputs;         // (samples)
    Text *texts;                  // (samples)
    StoreStep *steps;
    StorePass *passes;
    StoreSource *sources;
    uint8_t (*matches)[8]; // (steps)
    size_t room;           // samples
    size_t sample_count, step_count, pass_count, source_count;
} Batch;

static bool make_room(Batch *b, const LedgerEntry *entries, int count, Error *e) {
    size_t samples = 0, steps = 0, passes = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < entries[i].said->count; k++) {
            const SaidTurn *t = &entries[i].said->turns[k];
            samples++;
            steps += (size_t)t->result.steps;
            passes += t->pass_count;
        }
    *b = (Batch){.room = samples,
                 .samples = mem_alloc(samples, sizeof *b->samples),
                 .divergences = mem_alloc(samples, sizeof *b->divergences),
                 .outputs = mem_alloc(samples, sizeof *b->outputs),
                 .texts = mem_alloc(samples, sizeof *b->texts),
                 .steps = mem_alloc(steps, sizeof *b->steps),
                 .passes = mem_alloc(passes, sizeof *b->passes),
                 .sources = mem_alloc(steps * SOURCES_MAX, sizeof *b->sources),
                 .matches = mem_alloc(steps, sizeof *b->matches)};
    return (b->samples && b->divergences && b->outputs && b->texts && b->steps && b->passes && b->sources &&
            b->matches) ||
           error_system(e, "out of memory for %zu steps", steps);
}

static void release(Batch *b) {
    for (size_t i = 0; b->texts && i < b->room; i++) text_release(&b->texts[i]);
    mem_free(b->samples);
    mem_free(b->divergences);
    mem_free(b->outputs);
    mem_free(b->texts);
    mem_free(b->steps);
    mem_free(b->passes);
    mem_free(b->sources);
    mem_free(b->matches);
}

// --- steps -----------------------------------------------------------------------------------------------

static StorePass pass_row(const Pass *p) {
    static const StoreRole ROLES[] = {
        [PASS_TARGET] = ROLE_TARGET, [PASS_DRAFT] = ROLE_DRAFT, [PASS_ADAPTER] = ROLE_ADAPTER};
    return (StorePass){.model = ROLES[p->model],
                       .a = p->a,
                       .b = p->b,
                       .rows = p->rows,
                       .context = p->context,
                       .count = p->count};
}

// The bits of a drafted chain, from the lowest of the first byte.
static int chain_bytes(const StepReport *r, uint8_t out[8]) {
    int bits = r->chain < 64 ? r->chain : 64, bytes = (bits + 7) / 8;
    for (int i = 0; i < bytes; i++) out[i] = (uint8_t)(r->agrees >> 8 * i);
    return bytes;
}

static void add_sources(Batch *b, const StepReport *r, StoreStep *row) {
    row->sources = b->sources + b->source_count;
    for (int i = 0; i < r->source_count; i++) {
        const SourceReport *s = &r->sources[i];
        if (s->rows == 0) continue;
        b->sources[b->source_count++] =
            (StoreSource){.name = s->name, .rows = s->rows, .length = s->match, .rank = s->rank};
        row->source_count++;
    }
}

// kind is the same number on both sides.
static void add_step(Batch *b, const StepReport *r, const Pass *passes) {
    StoreStep *row = &b->steps[b->step_count];
    *row = (StoreStep){.kind = (StoreStepKind)r->note.kind,
                       .context = r->context,
                       .rows = r->rows,
                       .asked = r->asked,
                       .depth = r->depth,
                       .candidates = r->candidates,
                       .probes = r->probes,
                       .drafted = r->depth,
                       .tried = r->tried,
                       .accepted = r->accepted,
                       .emitted = r->emitted,
                       .matches = r->chain ? b->matches[b->step_count] : NULL,
                       .match_bytes = chain_bytes(r, b->matches[b->step_count]),
                       .pool = r->note.pool || r->note.pool_hits ? r->note.pool : -1,
                       .pool_hits = r->note.pool_hits,
                       .propose_s = r->propose_s,
                       .forward_s = r->forward_s,
                       .verify_s = r->verify_s,
                       .observe_s = r->observe_s,
                       .device_s = r->device.run < 0 ? -1 : r->device.run + r->device.head,
                       .passes = b->passes + b->pass_count,
                       .pass_count = r->pass_count};
    for (int i = 0; i < r->pass_count; i++) b->passes[b->pass_count++] = pass_row(&passes[i]);
    add_sources(b, r, row);
    b->step_count++;
}

// --- samples ---------------------------------------------------------------------------------------------

static bool add_output(Batch *b, const DecodeResult *r, const Tokenizer *tokenizer, Error *e) {
    Text *text = &b->texts[b->sample_count];
    if (!tokenizer_decode(tokenizer, r->ids, (size_t)r->tokens, true, text, e)) return false;
    b->outputs[b->sample_count] = (StoreOutput){.ids = r->ids,
                                                .count = r->tokens,
                                                .text = text_get(text),
                                                .text_bytes = (int64_t)text->length,
                                                .repeated = repetition_share(r->ids, r->tokens),
                                                .looping = repetition_loops(r->ids, r->tokens)};
    return true;
}

static bool add_sample(Batch *b, const Ledger *l, const LedgerEntry *entry, int turn,
                       const Tokenizer *tokenizer, Error *e) {
    const SaidTurn *t = &entry->said->turns[turn];
    const DecodeResult *r = &t->result;
    bool diverged = entry->diverged == turn;
    if (!add_output(b, r, tokenizer, e)) return false;
    b->divergences[b->sample_count] = (StoreDivergence){.position = entry->divergence.position,
                                                        .wanted = entry->divergence.want,
                                                        .got = entry->divergence.got,
                                                        .margin = (double)entry->divergence.margin};
    b->samples[b->sample_count] = (StoreSample){
        .point = l->points[entry->point],
        .prompt = l->prompts[entry->dataset][(size_t)entry->prompt * CONVERSATION_TURNS + (size_t)turn],
        .attempt = l->attempt,
        .pass = entry->pass,
        .position = entry->position,
        .flags = t->flags | (diverged ? FLAG_DIVERGED : 0),
        .started = t->began,
        .prompt_tokens = (int)t->prompt.count,
        .tokens = r->tokens,
        .prefill_tokens = 1, // the authors' codes: prefill is a step, and gives a token
        .prefill_steps = 1,
        .prefill_s = r->prefill_s,
        .decode_s = said_decode_seconds(r),
        .device_head_s = r->device.head,
        .device_commit_s = r->device.commit,
        .output = &b->outputs[b->sample_count],
        .divergence = diverged ? &b->divergences[b->sample_count] : NULL,
        .steps = b->steps + b->step_count,
        .step_count = r->steps};
    b->sample_count++;
    size_t pass = 0;
    for (int i = 0; i < r->steps; i++) {
        add_step(b, &t->steps[i], t->passes + pass);
        pass += (size_t)t->steps[i].pass_count;
    }
    return true;
}

static bool same_output(const LedgerEntry *a, const LedgerEntry *b, int turn) {
    if (turn >= a->said->count || turn >= b->said->count) return false;
    const DecodeResult *p = &a->said->turns[turn].result, *q = &b->said->turns[turn].result;
    return p->tokens == q->tokens && memcmp(p->ids, q->ids, (size_t)p->tokens * sizeof *p->ids) == 0;
}

// Equal outputs are one row of the store: of greedy ones the first method's score is all methods'.
static bool add_scores(const Batch *b, Ledger *l, const LedgerEntry *entries, int count, Error *e) {
    const Text *text = b->texts;
    for (int i = 0; i < count; i++)
        for (int turn = 0; turn < entries[i].said->count; turn++, text++) {
            bool equal = i > 0 && entries[i].prompt == entries[i - 1].prompt &&
                         same_output(&entries[i], &entries[i - 1], turn);
            if (entries[i].pass == 0 && !equal && !scores_add(l, &entries[i], turn, text_get(text), e))
                return false;
        }
    return true;
}

// What decodes a prompt in a tenth of a second would otherwise wait for the disk as long as for its steps.
static bool begin(Ledger *l, Error *e) {
    enum { SYNC_SECONDS = 2 };
    double now = clock_now(clock_monotonic());
    if (now < l->synced + SYNC_SECONDS) return store_begin_lightly(l->store, e);
    l->synced = now;
    return store_begin(l->store, e);
}

bool ledger_add(Ledger *l, const LedgerEntry *entries, int count, const Tokenizer *tokenizer, Error *e) {
    Batch b;
    bool ok = make_room(&b, entries, count, e);
    for (int i = 0; ok && i < count; i++)
        for (int turn = 0; ok && turn < entries[i].said->count; turn++)
            ok = add_sample(&b, l, &entries[i], turn, tokenizer, e);
    ok = ok && begin(l, e) && store_samples(l->store, b.samples, (int)b.sample_count, e) &&
         add_scores(&b, l, entries, count, e) && store_commit(l->store, e);
    if (!ok) store_rollback(l->store);
    release(&b);
    return ok;
}
