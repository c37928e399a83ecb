// Whether counts are those of a distribution: Pearson's test.
#pragma once

// The chance that `draws` draws from `chance` (cells) differ from it at least as much as `count` (cells)
// does. Cells expected fewer than five times are counted as one; a count where the chance is 0 gives 0.
double chi_square(const double *count, const double *chance, int cells, double draws);
