// Coverage of intervals: draws prompts that differ in phi, fits them, and compares the intervals with the
// truth.
#pragma once

// So many draws of so many prompts, each with so many resamples; the test fails unless the 95% intervals of
// alpha and f, by both estimators, hold the truth about as often.
void coverage_run(int prompts, int draws, int resamples);
