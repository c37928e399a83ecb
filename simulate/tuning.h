// What a point of a method's space plans before anything of it is measured, and the time of a step by its
// rows, as measured at a few of them.
#pragma once

enum { TUNING_MOST_CURVE = 64 };

typedef struct TuningPoint {
    int N;       // tokens that a step can emit at most: at least 1
    double rows; // of a step, as planned: at least 1
} TuningPoint;

// The time of a step by its rows: (count), at most TUNING_MOST_CURVE; rows rising.
typedef struct TuningCurve {
    const double *rows;
    double *seconds;
    int count;
} TuningCurve;

// Makes it rise, or stay, with the rows, as near as that lets it be in the logarithms.
void tuning_curve_rise(TuningCurve *c);

// By proportion between two rows; past the last, as many times as long as there are times the rows.
double tuning_curve_at(const TuningCurve *c, double rows);
