// Measured points of S, one file for anybody's numbers: tab-separated, a header line, `#` lines are comments.
//
//     N  W   G   S     se        prompt  steps  accepted      candidates
//     5  15  15  1.83  0.02      mt-81   210    0:120,4:90    0:30,15:180
//
// N, W, G, S are required; the others may be there, then in every row:
//   se          standard error of S
//   prompt      a row holds one prompt's S at the point; `steps` must be there, and every prompt at every
//   point steps       steps that S is the mean of accepted    length:count, steps that accepted so many
//   drafted tokens; only steps past filling candidates  number:count, steps that had so many guesses to
//   verify; a number is 1,023 at most
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

enum { POINTS_MOST_N = 129, POINTS_MOST_CANDIDATES = 1023, POINTS_MOST_BYTES = 64 << 20 };

typedef enum {
    POINTS_SE = 1,
    POINTS_PROMPT = 2,
    POINTS_STEPS = 4,
    POINTS_ACCEPTED = 8,
    POINTS_CANDIDATES = 16
} PointsColumn;

typedef struct Histogram {
    double *count; // (most + 1)
    int most;
} Histogram;

typedef struct PointRow {
    int line;     // of the file
    double S;     // [1, N]
    double se;    // 0: not given
    double steps; // 1 where not given
    Histogram accepted, candidates;
} PointRow;

typedef struct PointAt {
    int N, W, G;
} PointAt;

typedef struct Points {
    PointAt *points;    // (count), in the file's order
    PointRow *rows;     // (count, prompts)
    char **names;       // (prompts) of the prompts; NULL entries where there is no such column
    int count, prompts; // prompts: 1 where there is no such column
    unsigned columns;   // of PointsColumn
} Points;

// `place` names the file in messages, which give the line too. Release also what failed.
bool points_parse(const char *bytes, size_t n, const char *place, Points *out, Error *e);
bool points_open(const char *path, Points *out, Error *e);
void points_release(Points *p);
