// Measured points of S in a file that anybody can write: a header line, then a line per row, fields between
// tabs; lines that begin with # are comments.
//
//     N  W   G   S     se        prompt  steps  accepted      candidates
//     5  15  15  1.83  0.02      mt-81   210    0:120,4:90    0:30,15:180
//
// N, W, G and S are required. Each other column may be there, and then has a value in every row:
//
//   se          the standard error of S
//   prompt      each row is one prompt's S at the point; needs `steps`, and every prompt at every point
//   steps       how many steps S is the mean of
//   accepted    length:count pairs: how many steps accepted that many drafted tokens, the filling steps not
//               counted
//   candidates  number:count pairs: how many steps had that many guesses to verify; at most 1,023 guesses
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
