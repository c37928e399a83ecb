// The loop that every method runs in, and is timed in, alike:
//
//      prefill (all prompt tokens but the last), then step by step:
//      root -> propose -> forward -> read -> verify -> commit -> observe
#pragma once
#include "engine/base/clock.h"
#include "engine/decode/report.h"

#include <stdint.h>

// What the target's progress is told between steps, with the share of max_tokens that is there.
#define DECODING "decoding"

typedef struct DecodeOptions {
    int max_tokens;
    const int *eos;
    int eos_count;
    bool ignore_eos;
    Sampling sampling;
    uint64_t seed;
    Layout layout;
    bool merge;        // equal prefixes share nodes; changes neither S nor output
    int max_rows;      // nodes of a step, the root among them; 0: as many as it holds
    int prefill_chunk; // 0: as many as a step holds
    Clock clock;
    // Sees each emitted token in order; false ends the output there (a stop string). May be NULL.
    bool (*emit)(void *state, int token);
    // Sees the finished prefill, and each finished step. May be NULL.
    void (*prefill)(void *state, const StepReport *report);
    void (*step)(void *state, const StepReport *report);
    void *state;
} DecodeOptions;

typedef struct DecodeResult {
    int *ids; // (tokens): the generated ones; for mem_free
    int tokens, steps;
    bool ended_by_eos;
    double S; // tokens / steps; 0 where there was no step
    // As the authors' codes count: their prefill runs the whole prompt, counts as a step and gives a token.
    double S_reference; // (tokens + 1) / (steps + 1)
    double prefill_s, propose_s, forward_s, verify_s, observe_s;
    PhaseSeconds device; // of all steps, as report.h says; below 0: unknown
    double rows;         // nodes run in all steps
    int parts;           // of the steps' trees, and the rows of each
    double part_rows[TREE_MAX_PARTS];
    int source_count;
    SourceTotals sources[SOURCES_MAX]; // (source_count)
} DecodeResult;

// Decodes one prompt of at least one token from an empty sequence. A session's context bounds prompt and
// output together.
bool decode(Session *target, Method *method, const int *prompt, int count, const DecodeOptions *o,
            DecodeResult *out, Error *e);
void decode_result_release(DecodeResult *r);
