#include "tests/support/thread_team.h"

#include <string.h>

// Publishes an address, and waits until all have; thread_leave waits until all have read.
static ThreadTeam *thread_meet(const struct ThreadRank *r, const void *mine) {
    r->team->mine[r->rank] = mine;
    pthread_barrier_wait(&r->team->barrier);
    return r->team;
}

static bool gather(void *self, const void *mine, void *all, size_t bytes, Error *e) {
    (void)e;
    ThreadTeam *t = thread_meet(self, mine);
    for (int i = 0; i < t->count; i++) memcpy((char *)all + (size_t)i * bytes, t->mine[i], bytes);
    pthread_barrier_wait(&t->barrier);
    return true;
}

static bool tell(void *self, Text *message, Error *e) {
    (void)e;
    const struct ThreadRank *r = self;
    ThreadTeam *t = thread_meet(r, message);
    const Text *said = t->mine[0];
    if (r->rank > 0) {
        text_clear(message);
        text_add(message, text_get(said), said->length);
    }
    pthread_barrier_wait(&t->barrier);
    return true;
}

void thread_team_init(ThreadTeam *t, int count) {
    *t = (ThreadTeam){.count = count};
    pthread_barrier_init(&t->barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) t->ranks[i] = (struct ThreadRank){t, i};
}

void thread_team_release(ThreadTeam *t) { pthread_barrier_destroy(&t->barrier); }

Team thread_team_rank(ThreadTeam *t, int rank) {
    return (Team){rank, t->count, &t->ranks[rank], gather, tell};
}
