// Figures by gnuplot, from the store: one common style and one script a figure, and the report.
//
// Nothing lives here yet. May include results and engine/base.
#pragma once
