// Which cores this process may run on, in the order in which threads should take them.
#pragma once
#include <stdbool.h>

enum { CORES_MAX = 1024 };

typedef struct Cores {
    int number[CORES_MAX]; // (count): the first hardware thread of each core, then the second ones
    int count;
    int physical; // of them that stand on a core of their own
} Cores;

// What the system does not tell is taken as: every allowed processor is a core.
void cores_find(Cores *c);

// Keeps the calling thread on one processor; false where the system refuses.
bool cores_pin(int number);
