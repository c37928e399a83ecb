// A step has few kinds of passes, the newest being the likeliest to come again: they are sought from the end.
#include "engine/core/passes.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

static bool same_layers(const Pass *p, const Pass *q) {
    return p->model == q->model && p->a == q->a && p->b == q->b;
}

static bool same(const Pass *p, const Pass *q) {
    return same_layers(p, q) && p->rows == q->rows && p->context == q->context;
}

static Pass *last_that_is(PassLog *log, const Pass *pass, bool (*is)(const Pass *, const Pass *)) {
    for (int i = log->count; i-- > 0;)
        if (is(&log->passes[i], pass)) return &log->passes[i];
    return NULL;
}

// The last places are kept for models and layers that have not been seen yet: those are few.
void pass_log_add(PassLog *log, const Pass *pass) {
    enum { RESERVED = 32 };
    Pass *known = last_that_is(log, pass, same);
    if (!known && log->count >= PASS_LOG_SIZE - RESERVED) known = last_that_is(log, pass, same_layers);
    if (!known) {
        assert(log->count < PASS_LOG_SIZE);
        known = &log->passes[log->count++];
        *known = *pass;
        known->count = 0;
    }
    known->count++;
}

const char *pass_model_name(PassModel model) {
    static const char *const NAMES[] = {"target", "draft", "adapter"};
    return NAMES[model];
}
