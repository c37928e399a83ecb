// What a fit says, for people and as JSON.
#pragma once
#include "simulate/fit.h"

// title: what was fitted; NULL: it needs no name.
void fit_report(const char *title, const FitOptions *o, const Fit *fit);

// One object, on one line. Fails without memory.
bool fit_report_json(const char *title, const FitOptions *o, const Fit *fit, Error *e);
