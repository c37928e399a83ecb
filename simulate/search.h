// The least value of a function of one variable.
#pragma once

typedef double (*SearchFunction)(double x, void *context);

// Within [low, high]: the best of `cells` equal cells' borders, then Brent's method about it down to
// `tolerance`. Finds the lowest of several valleys as long as each is wider than a cell. f must be finite.
double search_minimum(SearchFunction f, void *context, double low, double high, int cells, double tolerance);

// The same where the answer is likely within `reach` of `guess`: if the valley is there, the rest is not
// looked at.
double search_minimum_near(SearchFunction f, void *context, double low, double high, int cells,
                           double tolerance, double guess, double reach);
