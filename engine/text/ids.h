// A growing list of token ids.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct IdList {
    int *ids; // (count); for ids_release
    size_t count, capacity;
} IdList;

bool ids_add(IdList *list, int id); // false: no memory
void ids_release(IdList *list);
