// The loop that runs and times every method the same way:
//
//      prefill (all prompt tokens except the last), then step by step:
//      root -> propose -> forward -> read -> verify -> commit -> observe
//
// and its report of a step: everything the store keeps, and everything that pricing a step on other
// hardware needs.
#pragma once
#include "engine/base/clock.h"
#include "engine/core/step.h"
#include "engine/core/session.h"
#include "engine/decode/method.h"

#include <stdint.h>

// A proposal next to the tokens that a step emitted.
typedef struct StepGuess {
    int depth, token; // depth 1: for the step's first token
} StepGuess;

typedef struct StepReport {
    int number;     // from 0; -1 for prefill
    int context;    // tokens committed before the step
    int rows;       // nodes run
    int asked;      // nodes before merging
    int depth;      // of the deepest candidate
    int candidates; // nodes that may be accepted
    int probes;
    int parts; // of the tree (Lookahead's ranks), and the nodes of each
    int part_rows[TREE_MAX_PARTS];
    int tried;    // proposals the verifier looked at
    int accepted; // proposals it accepted
    int emitted;  // tokens, after EOS and limits: can be fewer than were accepted
    // The drafted chain: candidates from the root down, as long as each is the only proposal at its place.
    // Bit i of `agrees` is set if the target's argmax there is token i, even below a wrong token.
    int chain;
    uint64_t agrees; // for the first 64 tokens of the chain
    int source_count;
    SourceReport sources[SOURCES_MAX]; // (source_count)
    RankPath ranks;                    // of a method with a tree of ranks
    StepNote note;                     // the method's own
    // Of DecodeOptions.record: the proposals that were rejected, valid until the next step, and by how much
    // the target's last token exceeds its second choice (below 0: not known); record_s is in no other time.
    const StepGuess *rejected; // (rejected_count)
    int rejected_count;
    double margin, record_s;
    const Pass *passes; // (pass_count): by all models; valid until the next step
    int pass_count;
    double propose_s, forward_s, verify_s, observe_s;
    // Of a step that sequences share (core/batch.h), whose times above are this sequence's part
    int sequences;    // that shared the target's run; 0: it was alone
    int shared_run;   // its number in the batch
    double latency_s; // how long the step took
    // The target's device time; -1 each if the device has no clock of its own. Nobody waits for a commit, so
    // a commit counts towards the next step, and the last one towards none.
    PhaseSeconds device;
} StepReport;

// The Progress label between steps; the share is that of max_tokens.
#define DECODING "decoding"

typedef struct DecodeOptions {
    int max_tokens;
    const int *eos;
    int eos_count;
    bool ignore_eos;
    Sampling sampling;
    Verification verification; // BLOCK changes nothing where the method's steps aren't chains of draws
    uint64_t seed;
    const int *answer; // (answer_count): for methods that need it (NEEDS_ANSWER); NULL: not known
    int answer_count;
    Layout layout;
    bool merge;        // equal prefixes share nodes; changes neither S nor the output
    int max_rows;      // nodes per step, including the root; 0: as many as fit
    int prefill_chunk; // 0: as many as a step holds
    bool share_prompt; // don't run the prompt if the target still has it, and the method needs only that
    Clock clock;
    bool record; // reports the guesses that steps reject, at the cost of a head of one row
    // Called for each emitted token in order; returns false to end the output there (a stop string). May be
    // NULL.
    bool (*emit)(void *state, int token);
    // Called after prefill, and after each step. May be NULL.
    void (*prefill)(void *state, const StepReport *report);
    void (*step)(void *state, const StepReport *report);
    void *state;
} DecodeOptions;

typedef struct DecodeResult {
    int *ids; // (tokens): the generated tokens; free with mem_free
    int tokens, steps;
    bool ended_by_eos;
    double S; // tokens / steps; 0 without steps
    // As the authors' programs count: their prefill runs the whole prompt, is a step and yields a token.
    double S_reference; // (tokens + 1) / (steps + 1)
    double prefill_s, propose_s, forward_s, verify_s, observe_s;
    double prompt_s;     // of prefill_s: to run the prompt; 0: the method's own work is in it, too
    bool prompt_held;    // the prompt wasn't run (DecodeOptions.share_prompt)
    double latency_s;    // of the steps
    double record_s;     // in none of the others
    PhaseSeconds device; // sum over the steps (see StepReport); negative: unknown
    double rows;         // nodes run in all steps
    int parts;           // the most parts of any step's tree, and the rows of each part in all steps
    double part_rows[TREE_MAX_PARTS];
    int ranks;       // processes that shared the steps; 0: they were not shared
    RankTimes times; // of them
    int source_count;
    SourceTotals sources[SOURCES_MAX]; // (source_count)
} DecodeResult;

// Decodes one prompt (at least one token) from an empty sequence; in a lane, the steps are shared. If the
// method's ranks are the target's (call.h), every rank calls this. The session's context limits prompt and
// output together. Fails if the prompt doesn't fit, the backend or the method fails, or the work was
// interrupted; out->ids is then NULL.
bool decode(Session *target, Method *method, const int *prompt, int count, const DecodeOptions *o,
            DecodeResult *out, Error *e);
void decode_result_release(DecodeResult *r);
