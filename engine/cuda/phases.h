// What a stream is doing, from an event on (phases.c).
#pragma once

typedef enum { PHASE_IDLE, PHASE_RUN, PHASE_HEAD, PHASE_COMMIT, PHASES } Phase;
typedef struct Mark {
    Phase phase;
    void *event;
} Mark;
enum { MARKS = 16 };
