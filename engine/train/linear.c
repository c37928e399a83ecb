#include "engine/train/linear.h"

void linear_forward(const Linear *l, const float *x, const float *weight, float *y, int from, int to,
                    bool add) {
    size_t inputs = (size_t)l->inputs;
    Product p = {.a = view_rows(x + (size_t)from * inputs, inputs),
                 .b = view_transposed(weight, inputs),
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
                 .b = view_rows(weight, inputs),
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
