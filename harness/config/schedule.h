// The order in which points are measured: a sweep's points in groups, each measured side by side. A pure
// function.
//
//      setup    one opened model: weights, device, threads, ...
//      group    points of one setup, one dataset, one kind of output, and the autoregressive baseline that
//               they are compared with
//      round    one prompt: every member of the group decodes it, in turned order
//      pass     a round for every prompt, in order
//
// A method that keeps state from prompt to prompt (parameter `warm`) is measured in whole passes, each from
// an empty pool: such points have groups, and baselines, of their own. So have batches, whose sequences take
// the prompts of a pass one after another.
#pragma once
#include "harness/config/sweep.h"

typedef struct Setup {
    int model;                // which of the config's
    const Settings *settings; // of its first point; all points share its hardware settings, except layout,
                              // merge and max_rows
} Setup;

typedef struct Group {
    int setup, dataset;
    int baseline;     // the member of `members` that is autoregressive
    int first, count; // of `members`
    bool warm;        // measured by whole passes
} Group;

typedef struct Schedule {
    Point *points; // (point_count): the sweep's, with their numbers, then missing baselines
    int point_count, sweep_count;
    Setup *setups;
    Group *groups;
    int *members; // numbers of points, group by group; a group's in the order of the sweep
    int setup_count, group_count, member_count;
    const Sweep *sweep;
} Schedule;

// The sweep must live as long as the schedule.
bool schedule_make(const Experiment *x, const Sweep *sweep, Schedule *out, Error *e);
void schedule_release(Schedule *s); // accepts an empty one

// The index of the point with this number, or -1: it is in another part of the sweep, or in none.
int schedule_find(const Schedule *s, int number);

// Cuts a whole sweep into `shards` parts of about the same cost: shard_of (points of the sweep). cost:
// (points), above 0. A part has neighbours in the order of measurement, so it opens few models. None is empty
// unless there are more parts than points.
void schedule_shards(const Schedule *s, const double *cost, int shards, int *shard_of);

// Whether all settings of generation are the same.
bool schedule_same_output(const Settings *s, const Settings *t);

// The order in which `count` members run in a round: rotated by one from round to round, every other time
// backwards, so that each member has each position equally often, and follows more than one neighbour.
void schedule_order(int count, int round, int *order);
