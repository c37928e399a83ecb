// What a step did: all that the store keeps of it, and all that its time on other hardware is computed from.
#pragma once
#include "engine/core/session.h"
#include "engine/decode/method.h"

#include <stdint.h>

typedef struct StepReport {
    int number;     // from 0; of prefill -1
    int context;    // committed tokens before it
    int rows;       // nodes run
    int asked;      // nodes before merging
    int depth;      // of the deepest of the candidates
    int candidates; // nodes that may be accepted
    int probes;
    int parts; // of the tree, and the nodes of each (Lookahead's ranks)
    int part_rows[TREE_MAX_PARTS];
    int tried;    // proposals the verifier looked at
    int accepted; // of them
    int emitted;  // after EOS and limits; may be less than were accepted
    // The drafted chain: candidates from the root on, as long as each is the only proposal at its place. Bit
    // i of `agrees`: the target's argmax at that place is token i, after a wrong one too.
    int chain;
    uint64_t agrees; // of the first 64
    int source_count;
    SourceReport sources[SOURCES_MAX]; // (source_count)
    StepNote note;                     // the method's own, with the step's kind
    const Pass *passes;                // (pass_count): of all models; they hold until the next step
    int pass_count;
    double propose_s, forward_s, verify_s, observe_s;
    // Of the target alone, by its device's own clock; -1 each: it has none. A commit is not waited for, so it
    // is in the step after it, and the last one's in none.
    PhaseSeconds device;
} StepReport;

// Fills in what the step's tree and the verdict on it tell.
void report_tree(const Session *target, const Verdict *v, StepReport *r);

// The report of prefill: rows, passes and time of the prompt's run, and of the method's begin (propose_s). It
// emits nothing: the prompt's last token is the first step's root.
StepReport report_prefill(int rows, const PassLog *log, double forward_s, double begin_s);
