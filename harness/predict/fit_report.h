// What a fit says, for people and as JSON.
#pragma once
#include "engine/base/text.h"
#include "simulate/fit.h"

// title: what was fitted; NULL: it needs no name.
void fit_report(const char *title, const FitOptions *o, const Fit *fit);

// One object, on one line without its end. Fails without memory.
bool fit_report_json(const char *title, const FitOptions *o, const Fit *fit, Text *out);
