// Figures as data that the report's page draws itself (report/charts.js), in the reader's browser.
#pragma once
#include "plots/plots.h"

// Appends a figure as a JSON object: its labels and axes, read from its script, and its panels, each with its
// series of rows. Rows have the query's columns; a label is a number in `labels`, from 1, and null an unknown
// number; an empty row separates scans. y goes from `from` to `to`, and has `within` on it, where these are
// known. Colours and marks are numbers from 1; series of one colour have marks of their own.
//
//   {"x": "window W", "y": "S", "log": "x", "from": 1, "levels": [1.1, 1.5], "columns": ["W", "S", "low",
//    "high"], "labels": [], "notes": ["run 1, ..."], "panels": [{"title": "chat", "series": [{"name": "N=5",
//    "colour": 2, "mark": 2, "rows": [[5, 1.4, 1.3, 1.5]]}]}]}
void chart_put(const Figure *f, const PlotData *d, Text *out);

// Appends the palette's colours and those of heat maps as a JSON object: {"hues": ["#0072b2", ...], "ramp":
// ["#00224e", ...]}.
void chart_put_look(Text *out);
