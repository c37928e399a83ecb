// Fits, printed for people and as JSON.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "simulate/fit.h"

#include <stdint.h>

// title: of the fitted set; NULL: it needs no name.
void fit_report(const char *title, const FitOptions *o, const Fit *fit);

// One object, on one line without its end. Fails without memory.
bool fit_report_json(const char *title, const FitOptions *o, const Fit *fit, Text *out);
