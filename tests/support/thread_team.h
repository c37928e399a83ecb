// A team whose ranks are threads of the test: gather and tell over shared memory.
#pragma once
#include "engine/core/ranks.h"

#include <pthread.h>

typedef struct ThreadTeam {
    int count;
    pthread_barrier_t barrier;
    const void *mine[TREE_MAX_PARTS];
    struct ThreadRank {
        struct ThreadTeam *team;
        int rank;
    } ranks[TREE_MAX_PARTS];
} ThreadTeam;

void thread_team_init(ThreadTeam *t, int count);
void thread_team_release(ThreadTeam *t);
Team thread_team_rank(ThreadTeam *t, int rank); // valid as long as t
