// A sweep as a Slurm job: the script for sbatch that measures a plan's parts as an array, merges their stores
// when all have ended well, and writes the report (pure: everything comes in, and the text goes out); and the
// part that a task of any array measures.
#pragma once
#include "engine/base/args.h"

typedef struct SlurmJob {
    const char *program, *folder; // absolute paths: of this program, and of the working directory
    const char *config;           // as the user named it
    const char *run;              // further options of 'outpace run', as words for a shell
    const char *name;             // of the sweep
    const char *stores;           // a folder: stores and logs of the parts
    const char *about;            // a line on the time that it takes; NULL: not known
    int tasks, concurrent;        // parts; of these, how many run at once
    int cpus;                     // of a task; 0: whole nodes
    int gpus;                     // of a task
    double memory;                // bytes
    const char *time;             // of a task, as sbatch takes it
    const Words *options;         // of sbatch, without their dashes: "partition=long"
} SlurmJob;

// How long before its end a task is told of it: more than the program takes to end (signals.h).
enum { SLURM_NOTICE_S = 120 };

// False with e filled if a value can't be part of a script.
bool slurm_script(const SlurmJob *job, Text *out, Error *e);

// Seconds as sbatch takes them, "1-02:30:00", rounded up to whole minutes.
void slurm_time(double seconds, Text *out);
// Whether sbatch takes it, as minutes or in the forms of SLURM_TIMES, above 0 and no more than those days.
bool slurm_is_time(const char *text);
#define SLURM_TIMES "minutes, MM:SS, H:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS"
enum { SLURM_MOST_DAYS = 3650 };

// A word for a shell, quoted where it has to be.
void shell_word(const char *word, Text *out);

// Inside a task of an array: its part, from 0, of how many. Elsewhere both stay as they are.
bool slurm_task(int *shard, int *shards, Error *e);
