// One prompt answered by one method, turn by turn, with a report of every step: the unit of measurement. And
// the certificates that the answer is the model's own: greedy ids must equal autoregressive ones, and sampled
// tokens must come from the model's distribution.
//
// For the second, a sampled token becomes a number: the probability of all tokens before it in the model's
// distribution, ordered by likelihood, plus a random share of its own probability. Whatever the model and the
// text, these numbers are uniform and independent if, and only if, tokens are drawn from the model's
// distribution (uniformity() of simulate).
#pragma once
#include "engine/decode/decode.h"
#include "engine/text/tokenizer.h"
#include "harness/config/settings.h"
#include "harness/machine/watch.h"
#include "harness/inputs/prompts.h"

typedef struct Divergence {
    int position;    // of the output; -1: none
    int want, got;   // tokens; -1: the output had ended there
    float logits[2]; // of these two; of an end 0
    float margin;    // between the two best logits there
} Divergence;

// Shared by all answers that are measured side by side.
typedef struct AnswerEnv {
    Session *target;
    const Tokenizer *tokenizer;
    const Template *template; // NULL: plain texts
    const int *eos;           // (eos_count)
    int eos_count;
    Clock clock;
    Watch *watch;               // NULL: the machine isn't watched
    const struct Answer *round; // (round_count): answers whose runs of a prompt this one may share
    int round_count;
    bool record; // DecodeOptions.record
} AnswerEnv;

typedef struct AnswerTurn {
    IdList prompt;
    DecodeResult result;
    StepReport *steps;   // (result.steps); step i's passes are at its place in `passes`
    Pass *passes;        // (pass_count)
    StepGuess *rejected; // (rejected_count): likewise, with AnswerEnv.record
    size_t step_capacity, pass_count, pass_capacity, rejected_count, rejected_capacity;
    int flags;       // of results/record.h
    double began;    // seconds since 1970
    double shared_s; // of result.prefill_s: another answer's run of the prompt; 0: it was run for this one
} AnswerTurn;

// One point's answer to one prompt.
typedef struct Answer {
    int point, pass, dataset;
    int prompt;        // its number in the dataset, which is part of the seed
    int position;      // in the round's order
    AnswerTurn *turns; // (count)
    int count;         // fewer than the prompt's if the context is full
    int diverged;      // the turn that differs from the baseline's; -1: none
    Divergence divergence;
} Answer;

// Decodes the `count` user's turns of prompt out->prompt. `out` has no turns yet. A first turn that doesn't
// fit into the context is an error. known: the baseline's answer to the same prompt, for methods that need
// it, or NULL. Call answer_release even after a failure.
//
// A prompt that an answer of the round ran isn't run again if the target still has it and the method needs no
// more: its prefill is then the time of that run and of its own begin, and that run's disturbances are its
// own.
bool answer_prompt(const AnswerEnv *env, Method *method, const Settings *settings, char *const *turns,
                   int count, const Answer *known, Answer *out, Error *e);
void answer_release(Answer *a); // accepts an empty one

// Keeps a step's report and its passes: what DecodeOptions.step is to do for a turn. The turn may be used for
// a next output once pass_count is 0 again.
void answer_step(AnswerTurn *t, const StepReport *report);
void answer_turn_release(AnswerTurn *t); // accepts an empty one

double answer_decode_seconds(const DecodeResult *r);

// Sets got->diverged and got->divergence to the first turn in which `got` differs from `want`; both are
// greedy answers to one prompt. Later turns answer other prompts, and aren't compared. Runs the session to
// find the margin.
bool answer_compare(Session *s, const Answer *want, Answer *got, Error *e);

// Where `got` first differs from `want`, both outputs of one prompt. Runs the session to find the margin.
bool certify_greedy(Session *s, const IdList *prompt, const DecodeResult *want, const DecodeResult *got,
                    Divergence *out, Error *e);

// The numbers of sampled tokens, over all certified outputs.
typedef struct SampledPlaces {
    Sampling sampling;
    Random random; // for each token's share of its own
    double *u;     // (count), in [0, 1); the caller's, large enough for all tokens to come
    size_t count;
    int impossible; // tokens that had no probability at all
} SampledPlaces;

// Adds the numbers of the `count` ids that follow the prompt.
bool certify_sampled(Session *s, const IdList *prompt, const int *ids, int count, SampledPlaces *out,
                     Error *e);
