#include "harness/machine/step_cost.h"

StepCost step_cost(const Shape *shape, const BackendReport *report, const StepShape *step) {
    if (report->weight_bytes == 0) return (StepCost){0, 0}; // a backend without arithmetic
    double layers = (double)shape->layers, rows = (double)step->rows;
    double parameters = layers * (double)shape_layer_parameters(shape);
    double head = (double)shape->vocab * (double)shape->width * (double)step->read;
    double seen = step->seen < (double)shape->window * rows || !shape->window ? step->seen
                                                                              : (double)shape->window * rows;
    double attention = 2 * layers * (double)shape_q_width(shape) * seen; // scores, and sums of values
    double cached = shape->window && step->context > shape->window ? shape->window : step->context;
    return (StepCost){.bytes = (double)report->weight_bytes +
                               cached * step->cache_readers * (double)report->kv_bytes_per_position +
                               seen * (double)report->score_bytes,
                      .operations = 2 * (rows * parameters + head + attention)};
}
