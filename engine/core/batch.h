// Sequences that share steps. Each has its own cache, tree and method, and its own thread, which decodes as
// it would alone; where it would run its model, it waits for the others, and all of them run together, with
// one read of the weights:
//
//      lane 0    propose - run ........ head .. verify, propose - run ........
//      lane 1             propose - run head ..                  verify, ...
//      lane 2   prefill, alone ................ propose - run
//
// One thread works at a time: the others wait for its call, or for their turn. So nothing that lanes share
// needs a lock, and turns go round in a fixed order: the same prompts make the same steps.
//
// When all lanes wait, calls that want the same of the same model (its role) are one call of the backend. A
// target's runs to its last layer come last, when nothing else can go on: so drafts of any lengths, and
// early exits, end in one common run. A lane without a sequence isn't waited for.
//
// A lane that isn't in the batch (it runs a prompt, or opens a method) works alone, and stops the others.
//
// A lane's clock counts its own part of the time: what it does by itself, and an equal share of each call
// that it makes with others. The lanes' parts add up to the time of all.
#pragma once
#include "engine/base/clock.h"
#include "engine/core/session.h"

typedef struct Batch Batch;
typedef struct Lane Lane;

// A lane's work, from its own thread. False with e filled ends the whole batch: the calls of the other lanes
// then fail.
typedef bool BatchWork(void *state, Lane *lane, Error *e);

// Runs `work` in `lanes` lanes (SEQUENCES_MAX at most) until all have returned. False: e is the first error.
bool batch_run(int lanes, Clock clock, BatchWork *work, void *state, Error *e);

int lane_number(const Lane *lane);

// From here on the session's calls are the lane's. Sessions of equal roles in different lanes are of one
// model, opened to run together (BackendOptions.first); those of the target have ROLE_TARGET.
enum { ROLE_TARGET };
void lane_take(Lane *lane, Session *s, int role);
void lane_drop(Session *s); // takes a session without a lane

// Between these two, the lane's sequence shares its steps with others. lane_leave takes a lane that is out.
void lane_enter(Lane *lane);
void lane_leave(Lane *lane);

Clock lane_clock(Lane *lane);

// The time by all clocks, without that of lanes that worked alone: a sequence's steps take so long.
double lane_time(Lane *lane);

// Of the target's last run to its last layer: its number, from 0, and how many sequences shared it.
typedef struct SharedRun {
    int number, sequences;
} SharedRun;
SharedRun lane_shared(const Lane *lane);

// For the session.
// Runs the calls together. As in session.c, many rows go layer by layer, so that they can be interrupted.
void batch_calls(const Session *s, RunCall *calls, int count);
bool lane_run(Session *s, const StepRun *run, Error *e);
bool lane_head(Session *s, const int *nodes, int count, unsigned want, HeadOut *out, Error *e);
