// The points of a space to measure first: few, and none of the others far from all of them.
//
// The point nearest the middle, then repeatedly the one farthest from all chosen ones (Gonzalez' greedy
// 2-approximation of the smallest covering radius): corners come early, neighbors last.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// places: (count, axes), each in [0, 1]. allowed: (count), NULL: all. Fills chosen with at most `most`
// different points, the first among equals, and returns their number: all allowed points if they are
// fewer.
int design_points(const double *places, const bool *allowed, int count, int axes, int most, int *chosen);
