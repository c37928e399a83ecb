// Lists of whole numbers, with the ranges of configs (config/axis.h): "1,2,4", "1..16", "2..14+2", "1..64*2".
#pragma once
#include "engine/base/error.h"

enum { INT_LIST_MAX = 256 };

typedef struct IntList {
    int items[INT_LIST_MAX];
    int count;
} IntList;

// `what` names the option in messages; every number must be within [low, high].
bool int_list_parse(const char *text, const char *what, int low, int high, IntList *out, Error *e);
