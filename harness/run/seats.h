// The seats of a group: models and methods opened for them, and woken up before anything counts.
#pragma once
#include "harness/prompts/prompt_file.h"
#include "harness/run/round.h"

// The models of a setup, as its first point has them.
bool seats_open_models(const Inputs *in, int setup, Progress progress, Models *out, Error *e);

// An empty seat and its label for every member of g->group; states: (points of the schedule).
bool seats_make(GroupRun *g, PointState *states, Error *e);

typedef bool (*OpenMethod)(Method *m, const char *text, const MethodEnv *env, Error *e);

// Opens the seat's method, and notes how long that took. A method that cannot be opened fails the seat
// (round_fail); false with e filled where the run cannot go on.
bool seat_open(GroupRun *g, Models *models, OpenMethod open, int seat, Error *e);

// Runs prompts of random tokens, that no dataset has, through the seat's method, `tokens` after each:
// memory, threads and clocks wake up, and no pool learns anything of what is measured.
enum { WARM_UP_TOKENS = 16, WARM_UP_SEED = 1 };
bool seat_warm_up(GroupRun *g, int seat, const PromptList *prompts, int tokens, Error *e);
bool seats_warm_up_prompts(const Models *models, int count, PromptList *out, Error *e);

void seats_close(GroupRun *g);   // the methods alone
void seats_release(GroupRun *g); // takes an empty one
