// The speed of messages between a team's processes, as `outpace simulate --devices` takes it.
#pragma once
#include "engine/core/ranks.h"

typedef struct LinkSpeed {
    double gather_s;    // a gather of 8 bytes a rank
    double latency_s;   // of one message: a gather takes ceil(log2 R) of them (simulate/scaling.h)
    double bytes_per_s; // that a rank receives
} LinkSpeed;

// All ranks call this; all learn the result. Takes a fraction of a second.
bool link_measure(const Team *team, LinkSpeed *out, Error *e);
