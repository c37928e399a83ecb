// Which points of a space to measure first: few, and nowhere far from all of them.
//
// The point nearest the middle, and then again and again the one that is farthest from all that are chosen
// (Gonzalez' greedy 2-approximation of the smallest covering radius): corners come early, neighbours last.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

// places: (count, axes), each in [0, 1]. allowed: (count), NULL: all. Fills chosen with at most `most`
// different points, the first among equals, and gives their number: all that are allowed where they are
// fewer. -1 with e filled where memory runs out.
int design_points(const double *places, const bool *allowed, int count, int axes, int most, int *chosen,
                  Error *e);
