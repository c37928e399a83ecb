// Runs a plan, or continues it: answers that the ledger has aren't measured again.
//
//      point    a model, a dataset, a method and settings
//      group    points measured side by side on one open model and dataset, with their baseline
//      pass     every prompt of the group once
//      round    one prompt, answered by every point of the group in turned order: one transaction, except in
//               groups of whole passes. With a batch, a round is the whole pass
//      answer   one point's reply to one prompt, turn by turn (answer.h)
//
// Greedy answers are compared with the baseline's as they come.
#pragma once
#include "harness/cli/terminal.h"
#include "harness/inputs/prompts.h"
#include "harness/run/ledger.h"
#include "harness/run/progress.h"

// --- the reporter ---------------------------------------------------------------------------------------

// A run's reports while it runs: on a terminal, a single line that is rewritten; elsewhere a plain line once
// a minute, or JSON events on standard output, one per line.

// Where a run is. The texts must live until the next place is set.
typedef struct ReporterPlace {
    const char *phase; // "opening the model"; NULL: a round
    const char *model, *dataset;
    int first_point, last_point; // from 1, of Reporter.points
    int pass, prompt, prompts;   // from 0
    // The current method, from 0, of how many; how many tokens it may write; and its label. 0 and NULL: none.
    int method, methods, tokens;
    const char *label;
    double S, speedup; // so far, of the method `of`; NAN: not yet
    const char *of;
} ReporterPlace;

typedef struct Reporter {
    Line line;
    bool json;
    int points;                // that this part of the sweep has
    bool (*interrupted)(void); // NULL: it can't be interrupted
    double work, done;         // all work, in any unit; the part done since the start
    double round_work;         // of the open round; 0: none is open
    double rounds_s, round_began;
    ReporterPlace place;
} Reporter;

void reporter_begin(Reporter *r, bool json, int points, double work, bool (*interrupted)(void));

void reporter_place(Reporter *r, const ReporterPlace *place); // a phase is written at once
void reporter_method(Reporter *r, int method, int methods, const char *label, int tokens);
void reporter_round(Reporter *r, double work); // a round begins
void reporter_round_end(Reporter *r);
void reporter_clear(Reporter *r); // before anything else is printed

// For the models of a run: shows their work after the place, and stops it when interrupted() returns true.
Progress reporter_progress(Reporter *r);

// Events. Each clears the line first.
void reporter_sample(Reporter *r, const char *hash, const Answer *answer);
void reporter_divergence(Reporter *r, const char *label, const char *prompt, const Answer *answer);
void reporter_failure(Reporter *r, const char *label, const char *why);
// `count` of a baseline's texts, this one first, aren't those that were written first for their prompts.
void reporter_stray(Reporter *r, int point, int count, const char *prompt, int pass);
void reporter_end(Reporter *r, const char *result, int points, int failed, int diverged, double seconds,
                  double harness_s);

// --- runs ---------------------------------------------------------------------------------------------

typedef struct RunResult {
    bool interrupted;          // or asked to end: see interrupt_gently
    int points;                // of the sweep, measured
    int baselines;             // measured, but not in the sweep
    int skipped, failed, left; // of the sweep, not measured
    int diverged;              // points whose text differs from the baseline's
    int rounds;                // of this start
    double seconds, harness_s; // of these rounds; the part of it that isn't decoding
} RunResult;

// A test's replacements for the real functions; NULL: the real ones.
typedef struct RunSeams {
    bool (*open_method)(Method *m, const char *text, const MethodEnv *env, Error *e);
    bool (*interrupted)(void), (*asked)(void);
    void (*look)(void *state, WatchLook *out); // see watch.h
    void *look_state;
    Clock clock; // now NULL: the monotonic one
} RunSeams;

// False with e filled if the run can't continue; the ledger then has every finished round. seams may be
// NULL.
bool run_plan(Ledger *ledger, bool json, const RunSeams *seams, RunResult *out, Error *e);

// --- a group at work, which tuning runs round by round

typedef struct GroupPoint {
    int point;       // its number in the schedule
    Method *methods; // (batch of the group): one a sequence
    bool open;
    PointProgress *progress;
    Text label;
    double prefill_s, step_s; // per token of the prompt, and per step, of its warm-up; 0: unknown
} GroupPoint;

typedef struct GroupRun {
    Ledger *ledger;
    Reporter *reporter;
    const Group *group;
    AnswerEnv env;
    Models *models;
    GroupPoint *points; // (group->count)
    int baseline;       // of the points
    Answer *answers;    // (answer_count): measured but not stored yet
    size_t answer_count, answer_capacity;
    int rounds;
    double decode_s, round_s; // of all rounds: decoding with prefill, and everything
} GroupRun;

// The models of a setup.
bool group_open_models(const Inputs *in, int setup, Progress progress, Models *out, Error *e);

// The environment that a group's answers share; `models` must be open.
AnswerEnv group_env(const Inputs *in, const Group *g, Models *models, Clock clock, Watch *watch);

// A closed point with its label for every member of g->group. progress: (points of the schedule).
void group_init(GroupRun *g, PointProgress *progress);
void group_release(GroupRun *g); // also closes its methods; accepts an empty one

typedef bool (*OpenMethod)(Method *m, const char *text, const MethodEnv *env, Error *e);

// Opens a point's method, and stores how long that took. A method that can't be opened fails its point;
// false with e filled if the run can't continue.
bool group_open_point(GroupRun *g, OpenMethod open, int point, Error *e);

// Runs prompts of random tokens, which no dataset has, through the point's method, `tokens` after each: that
// warms up memory, threads and clocks, and no pool learns from the measured prompts.
enum { WARM_UP_TOKENS = 16, WARM_UP_SEED = 1 };
bool group_warm_up(GroupRun *g, int point, const PromptList *prompts, int tokens, Error *e);
void group_warm_up_prompts(const Models *models, int count, PromptList *out);

// Every open point that is wanted (NULL: all; the baseline always) answers the prompt. A point that can't
// answer fails. False with e filled if the run can't continue.
bool run_round(GroupRun *g, int pass, int prompt, const bool *wanted, Error *e);
// The same for prompts [first, first + count) in a batch: each point's sequences take one after another.
bool run_batch(GroupRun *g, int pass, int first, int count, const bool *wanted, Error *e);

// Stores the measured answers, except those of failed points, and forgets them.
bool group_store(GroupRun *g, Error *e);
void group_forget(GroupRun *g);
