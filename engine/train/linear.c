#include "engine/train/linear.h"

#include "engine/cpu/pool.h"

size_t linear_panels_size(const TrainKernels *k, int inputs, int outputs) {
    size_t forward = k->panels_size(inputs, outputs), backward = k->panels_size(outputs, inputs);
    return forward > backward ? forward : backward;
}

static Panels panels_of(const Linear *l, bool backward) {
    return backward ? (Panels){l->panels, l->outputs, l->inputs} : (Panels){l->panels, l->inputs, l->outputs};
}

static View weight_view(const Linear *l, const float *weight, bool backward) {
    size_t inputs = (size_t)l->inputs;
    return backward ? view_rows(weight, inputs) : view_transposed(weight, inputs);
}

void linear_pack(const Linear *l, const float *weight, bool backward, int thread, int threads) {
    View b = weight_view(l, weight, backward);
    Panels to = panels_of(l, backward);
    int from, end;
    pool_share(to.n, l->kernels->panel_unit, thread, threads, &from, &end);
    l->kernels->pack(&b, &to, from, end);
}

void linear_forward(const Linear *l, const float *x, const float *weight, float *y, int from, int to,
                    bool add) {
    size_t inputs = (size_t)l->inputs;
    Product p = {.a = view_rows(x + (size_t)from * inputs, inputs),
                 .b = weight_view(l, weight, false),
                 .panels = panels_of(l, false),
                 .c = y + (size_t)from * l->y_stride,
                 .stride = l->y_stride,
                 .m = to - from,
                 .n = l->outputs,
                 .k = l->inputs,
                 .add = add};
    l->kernels->product(&p, l->scratch);
}

void linear_backward_input(const Linear *l, const float *dy, const float *weight, float *dx, int from,
                           int to) {
    size_t inputs = (size_t)l->inputs;
    Product p = {.a = view_rows(dy + (size_t)from * l->y_stride, l->y_stride),
                 .b = weight_view(l, weight, true),
                 .panels = panels_of(l, true),
                 .c = dx + (size_t)from * inputs,
                 .stride = inputs,
                 .m = to - from,
                 .n = l->inputs,
                 .k = l->outputs};
    l->kernels->product(&p, l->scratch);
}

void linear_backward_weight(const Linear *l, const float *dy, const float *x, int rows, float *dweight,
                            int from, int to) {
    size_t inputs = (size_t)l->inputs;
    Product p = {.a = view_transposed(dy + from, l->y_stride),
                 .b = view_rows(x, inputs),
                 .c = dweight + (size_t)from * inputs,
                 .stride = inputs,
                 .m = to - from,
                 .n = l->inputs,
                 .k = rows,
                 .add = true};
    l->kernels->product(&p, l->scratch);
}
