// Lists of numbers: their one grammar, in configs and on command lines.
//
//   5        1,2,4        2..14        2..14+2        1..64*2        0.1..0.9+0.1
//
// A range includes its end if a step lands on it: 2..7+2 is 2, 4, 6.
#pragma once
#include "engine/base/error.h"

typedef struct Range {
    double from, to, step;
    bool multiplied;
} Range;

// Reads one number or range at *at and moves *at past it. false: it's neither, or it's empty or endless.
bool range_read(const char **at, Range *out);
bool range_item(const Range *r, int i, double *out); // false: the range has only i items
bool range_starts(const char *text);                 // whether there is a number and then ".."

enum { INT_LIST_MAX = 256 };

typedef struct IntList {
    int items[INT_LIST_MAX];
    int count;
} IntList;

// "1,2,8..64*2" as whole numbers within [low, high]; `what` names the option in messages.
bool int_list_parse(const char *text, const char *what, int low, int high, IntList *out, Error *e);
int int_list_most(const IntList *l); // the largest, at least 0

enum { REAL_LIST_MAX = 64 };

typedef struct RealList {
    double items[REAL_LIST_MAX];
    int count;
} RealList;

// "0.9:0.75:0.5" within [low, high], for parameters of methods, where commas have another meaning.
bool real_list_parse(const char *text, const char *what, double low, double high, RealList *out, Error *e);
