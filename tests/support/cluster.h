// A real Slurm of four nodes on this machine (tests/support/slurm), for tests that submit jobs.
#pragma once
#include <stdbool.h>

// Starts it in a folder, and sets the environment of its commands. False, with a line that names the reason,
// if its packages are missing or this isn't root.
bool cluster_start(const char *folder);
void cluster_stop(const char *folder);

// Runs a line of bash in the folder. The test fails unless it ends with 0.
void cluster_bash(const char *folder, const char *line);

// Whether it ends with 0 within so many seconds, tried again and again.
bool cluster_wait(const char *folder, int seconds, const char *line);
