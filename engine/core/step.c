// A step has few kinds of passes, and the newest is the likeliest to recur: the log is searched from the end.
#include "engine/core/step.h"

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

// The last entries are reserved for models and layers that haven't appeared yet; there are few of them.
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
    assert(known->count >= 1 && same_layers(known, pass) && pass->a <= pass->b);
}
