// Lists that grow: a pointer from mem_new or NULL, how many elements it has, and how many fit.
#pragma once
#include "engine/base/memory.h"

// The address of one more element: *LIST_ADD(l->items, l->count, l->capacity) = x.
#define LIST_ADD(items, count, capacity) \
    (mem_grow(&(items), &(capacity), (size_t)(count) + 1, sizeof *(items)), &(items)[(count)++])
