// Which points of a space to measure first: few, and nowhere far from all of them.
//
// The point nearest the middle, and then again and again the one that is farthest from all that are chosen
// (Gonzalez' greedy 2-approximation of the smallest covering radius): corners come early, neighbours last.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// places: (count, axes), each in [0, 1]. allowed: (count), NULL: all. Fills chosen with at most `most`
// different points, the first among equals, and returns their number: all allowed points if they are
// fewer.
int design_points(const double *places, const bool *allowed, int count, int axes, int most, int *chosen);
