// An answer becomes rows: the only place that knows both step reports and the store. All rows of a call are
// laid out in memory first (AnswerRows has the texts and arrays that they point to) and written in one
// transaction. Invariant, asserted by answer_rows_check(): every array was allocated at its final size.
#include "harness/run/ledger.h"

#include "datasets/rouge.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// --- repetition ------------------------------------------------------------------------------------------

enum { GRAM = 4, TIMES = 3, SHORTEST = 12, LONG_GRAM = 8 };

static int by_ids(const void *a, const void *b) {
    const int *p = *(const int *const *)a, *q = *(const int *const *)b;
    for (int i = 0; i < GRAM; i++)
        if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
    return 0;
}

double repetition_share(const int *ids, int count) {
    int grams = count - GRAM + 1, again = 0;
    if (grams < 1) return -1;
    const int **sorted = mem_new((size_t)grams, sizeof *sorted);
    for (int i = 0; i < grams; i++) sorted[i] = ids + i;
    qsort(sorted, (size_t)grams, sizeof *sorted, by_ids);
    for (int i = 1; i < grams; i++) again += by_ids(&sorted[i - 1], &sorted[i]) == 0;
    mem_free(sorted);
    return (double)again / grams;
}

// How often the long gram at `from` occurs there and after it, without overlap.
static int times_from(const int *ids, int count, int from) {
    int times = 1;
    for (int i = from + LONG_GRAM; i + LONG_GRAM <= count;) {
        bool same = memcmp(ids + from, ids + i, LONG_GRAM * sizeof *ids) == 0;
        times += same;
        i += same ? LONG_GRAM : 1;
    }
    return times;
}

bool repetition_loops(const int *ids, int count) {
    for (int period = 1; TIMES * period <= count; period++) {
        int length = TIMES * period > SHORTEST ? TIMES * period : SHORTEST;
        const int *from = ids + count - length;
        if (length <= count && memcmp(from, from + period, (size_t)(length - period) * sizeof *from) == 0)
            return true;
    }
    for (int i = 0; i + TIMES * LONG_GRAM <= count; i++)
        if (times_from(ids, count, i) >= TIMES) return true;
    return false;
}

// --- memory ----------------------------------------------------------------------------------------------

// The rows of some samples, freed together.
typedef struct AnswerRows {
    StoreSample *samples;
    StoreDivergence *divergences; // (samples)
    StoreOutput *outputs;         // (samples)
    Text *texts, *pieces;         // (samples)
    StoreStep *steps;
    StorePass *passes;
    StoreSource *sources;
    StoreGuess *rejected;
    Text *rejected_pieces;                                       // (rejected)
    uint8_t (*matches)[8];                                       // (steps)
    size_t samples_size, steps_size, passes_size, rejected_size; // of the arrays
    size_t sample_count, step_count, pass_count, source_count, rejected_count;
} AnswerRows;

static void allocate_rows(AnswerRows *b, const Answer *answers, int count) {
    size_t samples = 0, steps = 0, passes = 0, rejected = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < answers[i].count; k++) {
            const AnswerTurn *t = &answers[i].turns[k];
            samples++;
            steps += (size_t)t->result.steps;
            passes += t->pass_count;
            rejected += t->rejected_count;
        }
    *b = (AnswerRows){.samples_size = samples,
                      .steps_size = steps,
                      .passes_size = passes,
                      .rejected_size = rejected,
                      .samples = mem_new(samples, sizeof *b->samples),
                      .divergences = mem_new(samples, sizeof *b->divergences),
                      .outputs = mem_new(samples, sizeof *b->outputs),
                      .texts = mem_new(samples, sizeof *b->texts),
                      .pieces = mem_new(samples, sizeof *b->pieces),
                      .steps = mem_new(steps, sizeof *b->steps),
                      .passes = mem_new(passes, sizeof *b->passes),
                      .sources = mem_new(steps * SOURCES_MAX, sizeof *b->sources),
                      .rejected = mem_new(rejected, sizeof *b->rejected),
                      .rejected_pieces = mem_new(rejected, sizeof *b->rejected_pieces),
                      .matches = mem_new(steps, sizeof *b->matches)};
}

// After all answers are laid out.
static void answer_rows_check(const AnswerRows *b) {
    assert(b->sample_count == b->samples_size && b->step_count == b->steps_size);
    assert(b->pass_count == b->passes_size && b->rejected_count == b->rejected_size);
    assert(b->source_count <= b->steps_size * SOURCES_MAX);
}

static void release_rows(AnswerRows *b) {
    for (size_t i = 0; i < b->samples_size; i++) text_release(&b->texts[i]), text_release(&b->pieces[i]);
    for (size_t i = 0; i < b->rejected_size; i++) text_release(&b->rejected_pieces[i]);
    MEM_FREE(b->rejected_pieces, b->rejected, b->samples, b->divergences, b->outputs, b->texts, b->pieces,
             b->steps, b->passes, b->sources, b->matches);
}

// --- steps -----------------------------------------------------------------------------------------------

// StepKind and StoreStepKind have the same numbers.
static bool add_step(AnswerRows *b, const StepReport *r, const Pass *passes, const StepGuess *rejected,
                     const Tokenizer *tokenizer, Error *e) {
    assert(b->step_count < b->steps_size && b->pass_count + (size_t)r->pass_count <= b->passes_size);
    static const StoreRole ROLES[] = {
        [PASS_TARGET] = ROLE_TARGET, [PASS_DRAFT] = ROLE_DRAFT, [PASS_ADAPTER] = ROLE_ADAPTER};
    StoreStep *row = &b->steps[b->step_count];
    // The bits of a drafted chain, from the lowest of the first byte.
    uint8_t *chain = b->matches[b->step_count];
    int bytes = ((r->chain < 64 ? r->chain : 64) + 7) / 8;
    for (int i = 0; i < bytes; i++) chain[i] = (uint8_t)(r->agrees >> 8 * i);
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
                       .matches = r->chain ? chain : NULL,
                       .match_bytes = bytes,
                       .pool = r->note.pool || r->note.pool_hits ? r->note.pool : -1,
                       .pool_hits = r->note.pool_hits,
                       .propose_s = r->propose_s,
                       .forward_s = r->forward_s,
                       .verify_s = r->verify_s,
                       .observe_s = r->observe_s,
                       .device_s = r->device.run < 0 ? -1 : r->device.run + r->device.head,
                       .sequences = r->sequences,
                       .shared_run = r->shared_run,
                       .latency_s = r->latency_s,
                       .rejected = b->rejected + b->rejected_count,
                       .rejected_count = r->rejected_count,
                       .margin = r->record_s > 0 ? r->margin : -1,
                       .passes = b->passes + b->pass_count,
                       .pass_count = r->pass_count};
    for (const Pass *p = passes; p < passes + r->pass_count; p++)
        b->passes[b->pass_count++] = (StorePass){.model = ROLES[p->model],
                                                 .a = p->a,
                                                 .b = p->b,
                                                 .rows = p->rows,
                                                 .context = p->context,
                                                 .count = p->count};
    row->sources = b->sources + b->source_count;
    for (const SourceReport *x = r->sources; x < r->sources + r->source_count; x++) {
        if (x->rows == 0) continue;
        b->sources[b->source_count++] =
            (StoreSource){.name = x->name, .rows = x->rows, .length = x->match, .rank = x->rank};
        row->source_count++;
    }
    b->step_count++;
    for (const StepGuess *g = rejected; g < rejected + r->rejected_count; g++) {
        Text *piece = &b->rejected_pieces[b->rejected_count];
        if (tokenizer && !tokenizer_decode(tokenizer, &g->token, 1, false, piece, e)) return false;
        b->rejected[b->rejected_count++] =
            (StoreGuess){g->depth, g->token, tokenizer ? text_get(piece) : NULL};
    }
    return true;
}

// --- samples ---------------------------------------------------------------------------------------------

// The part of each token in the text, as a JSON array.
static bool put_pieces(const Tokenizer *tokenizer, const DecodeResult *r, Text *out, Error *e) {
    LOCAL(stream_release) TextStream stream;
    LOCAL_TEXT piece = {0};
    json_t *list = json_array();
    bool ok = true;
    stream_begin(&stream, tokenizer, true);
    for (int i = 0; ok && i < r->tokens; i++) {
        text_clear(&piece);
        ok = stream_next(&stream, r->ids[i], &piece, e) &&
             (i + 1 < r->tokens || stream_end(&stream, &piece, e));
        json_array_append_new(list, json_from_text(text_get(&piece)));
    }
    json_append(list, JSON_COMPACT, out);
    return ok;
}

static bool add_sample(AnswerRows *b, const Ledger *l, const Answer *answer, int turn,
                       const Tokenizer *tokenizer, Error *e) {
    const AnswerTurn *t = &answer->turns[turn];
    const DecodeResult *r = &t->result;
    bool diverged = answer->diverged == turn;
    assert(b->sample_count < b->samples_size && l->points[answer->point]);
    Text *text = &b->texts[b->sample_count];
    if (tokenizer && !tokenizer_decode(tokenizer, r->ids, (size_t)r->tokens, true, text, e)) return false;
    Text *pieces = &b->pieces[b->sample_count];
    if (tokenizer && !put_pieces(tokenizer, r, pieces, e)) return false;
    b->outputs[b->sample_count] = (StoreOutput){.ids = r->ids,
                                                .count = r->tokens,
                                                .text = tokenizer ? text_get(text) : NULL,
                                                .text_bytes = (int64_t)text->length,
                                                .repeated = repetition_share(r->ids, r->tokens),
                                                .looping = repetition_loops(r->ids, r->tokens),
                                                .pieces = tokenizer ? text_get(pieces) : NULL};
    b->divergences[b->sample_count] = (StoreDivergence){.position = answer->divergence.position,
                                                        .wanted = answer->divergence.want,
                                                        .got = answer->divergence.got,
                                                        .margin = (double)answer->divergence.margin};
    b->samples[b->sample_count] = (StoreSample){
        .point = l->points[answer->point],
        .prompt = l->prompts[answer->dataset][(size_t)answer->prompt * CONVERSATION_TURNS + (size_t)turn],
        .attempt = l->attempt,
        .pass = answer->pass,
        .position = answer->position,
        .flags = t->flags | (diverged ? FLAG_DIVERGED : 0),
        .started = t->began,
        .prompt_tokens = (int)t->prompt.count,
        .tokens = r->tokens,
        .prefill_tokens = 1, // as the authors' programs count: prefill is a step that yields a token
        .prefill_steps = 1,
        .prefill_s = r->prefill_s,
        .decode_s = answer_decode_seconds(r),
        .device_head_s = r->device.head,
        .device_commit_s = r->device.commit,
        .output = &b->outputs[b->sample_count],
        .divergence = diverged ? &b->divergences[b->sample_count] : NULL,
        .steps = b->steps + b->step_count,
        .step_count = r->steps};
    b->sample_count++;
    size_t pass = 0, rejected = 0;
    for (int i = 0; i < r->steps; i++) {
        if (!add_step(b, &t->steps[i], t->passes + pass, t->rejected + rejected, tokenizer, e)) return false;
        pass += (size_t)t->steps[i].pass_count;
        rejected += (size_t)t->steps[i].rejected_count;
    }
    return true;
}

enum { MOST_REFERENCES = 64 };

// Scores an output if its dataset has references for the turn: ROUGE against the best of them.
static bool add_score(Ledger *l, const Answer *answer, int turn, const char *text, Error *e) {
    const DatasetPrompt *p = &l->inputs->datasets[answer->dataset].prompts[answer->prompt];
    const char *references[MOST_REFERENCES];
    int count = 0;
    for (int i = 0; i < p->reference_count && count < MOST_REFERENCES; i++)
        if (p->references[i].turn == turn) references[count++] = p->references[i].text;
    if (count == 0) return true;
    Rouge r = rouge_best(references, count, text);
    int64_t prompt = l->prompts[answer->dataset][(size_t)answer->prompt * CONVERSATION_TURNS + (size_t)turn];
    int64_t point = l->points[answer->point];
    return store_score(l->store, point, answer->pass, prompt, "rouge1", r.one.f, e) &&
           store_score(l->store, point, answer->pass, prompt, "rouge2", r.two.f, e) &&
           store_score(l->store, point, answer->pass, prompt, "rougeL", r.longest.f, e);
}

// Equal outputs are one row of the store, so equal greedy outputs are scored only once.
static bool add_scores(const AnswerRows *b, Ledger *l, const Answer *answers, int count, Error *e) {
    const Text *text = b->texts;
    if (!l->inputs) return true;
    for (int i = 0; i < count; i++)
        for (int turn = 0; turn < answers[i].count; turn++, text++) {
            const Answer *before =
                i > 0 && answers[i].prompt == answers[i - 1].prompt ? &answers[i - 1] : NULL;
            const DecodeResult *p = &answers[i].turns[turn].result,
                               *q = before && turn < before->count ? &before->turns[turn].result : NULL;
            bool equal = q && p->tokens == q->tokens &&
                         memcmp(p->ids, q->ids, (size_t)p->tokens * sizeof *p->ids) == 0;
            if (answers[i].pass == 0 && !equal && !add_score(l, &answers[i], turn, text_get(text), e))
                return false;
        }
    return true;
}

bool ledger_add(Ledger *l, const Answer *answers, int count, const Tokenizer *tokenizer, Error *e) {
    // Syncs the disk every SYNC_SECONDS only: a method that decodes a prompt in a tenth of a second would
    // otherwise wait for the disk as long as for its steps.
    enum { SYNC_SECONDS = 2 };
    AnswerRows b;
    bool ok = true;
    allocate_rows(&b, answers, count);
    for (int i = 0; ok && i < count; i++)
        for (int turn = 0; ok && turn < answers[i].count; turn++)
            ok = add_sample(&b, l, &answers[i], turn, tokenizer, e);
    if (ok) answer_rows_check(&b);
    for (int i = 0; i < count; i++)
        for (const AnswerTurn *t = answers[i].turns; t < answers[i].turns + answers[i].count; t++)
            l->record_s += t->result.record_s, l->rejected += (double)t->rejected_count;
    double now = clock_now(clock_monotonic());
    bool syncs = now >= l->synced + SYNC_SECONDS;
    if (ok && syncs) l->synced = now;
    ok = ok && (syncs ? store_begin : store_begin_lightly)(l->store, e) &&
         store_samples(l->store, b.samples, (int)b.sample_count, e) && add_scores(&b, l, answers, count, e) &&
         store_commit(l->store, e);
    if (!ok) store_rollback(l->store);
    release_rows(&b);
    return ok;
}
