#include "harness/table/method_text.h"

#include "engine/base/memory.h"
#include "engine/decode/method.h"

#include <string.h>

// A method's parameters out of its text, presets as they are; `open`: those that are '*', and texts (a file's
// name, a tree) of which nothing is said.
typedef struct Parsed {
    const MethodInfo *info;
    void *values;
    bool open[ARGS_MAX];
} Parsed;

static const MethodInfo *info_of(const char *text, Error *e) {
    char name[64];
    size_t n = strcspn(text, ":");
    if (n >= sizeof name) return NULL;
    memcpy(name, text, n);
    name[n] = 0;
    return method_find(name, e);
}

static bool set_open(Parsed *p, const char *pair, size_t n) {
    for (size_t i = 0; i < p->info->param_count; i++) {
        size_t key = strlen(p->info->params[i].name);
        if (n != key + 2 || strncmp(pair, p->info->params[i].name, key) != 0 || pair[key] != '=') continue;
        p->open[i] = true;
        return true;
    }
    return false;
}

// Takes the '*' out of "k=*,q=1", and leaves the rest for param_parse.
static bool take_open(Parsed *p, const char *params, Text *rest) {
    for (const char *at = params; *at;) {
        size_t n = args_span(at, ',');
        if (n > 2 && at[n - 1] == '*' && at[n - 2] == '=') {
            if (!set_open(p, at, n)) return false;
        } else {
            text_puts(rest, rest->length ? "," : "");
            text_add(rest, at, n);
        }
        at += n + (at[n] != 0);
    }
    return true;
}

static void release(Parsed *p) { mem_free(p->values); }

// Whether ":key=value,..." has the key.
static bool names(const char *params, const char *key) {
    size_t n = strlen(key);
    for (const char *at = params; at && *at; at += strcspn(at + 1, ",") + 1)
        if (strncmp(at + 1, key, n) == 0 && at[n + 1] == '=') return true;
    return false;
}

static bool parse(Parsed *p, const char *text, Error *e) {
    const char *colon = strchr(text, ':');
    Text rest = {0};
    *p = (Parsed){.info = info_of(text, e)};
    if (!p->info) return false;
    p->values = mem_new(1, p->info->param_size ? p->info->param_size : 1);
    args_defaults(p->info->params, p->info->param_count, p->values);
    for (size_t i = 0; i < p->info->param_count; i++)
        p->open[i] = p->info->params[i].type == ARG_TEXT && !names(colon, p->info->params[i].name);
    bool ok = (!colon || take_open(p, colon + 1, &rest) ||
               error_input(e, "'%s' leaves open what there is not", text)) &&
              args_parse(p->info->params, p->info->param_count, p->values, text_get(&rest), e);
    text_release(&rest);
    if (!ok) release(p);
    return ok;
}

bool method_text_check(const char *text, Error *e) {
    Parsed p;
    if (!parse(&p, text, e)) return false;
    release(&p);
    return true;
}

bool method_text_open(const char *text) { return strstr(text, "=*") != NULL; }

bool method_text_same_method(const char *text, const char *ran) {
    size_t n = strcspn(text, ":");
    return n == strcspn(ran, ":") && strncmp(text, ran, n) == 0;
}

// A value as a person would write it: 0.6, where param_write says all digits of the nearest double.
static void write_value(const Arg *p, const void *values, Text *out) {
    Text pair = {0};
    args_write(p, 1, values, &pair);
    const char *equals = strchr(text_get(&pair), '=');
    const void *at = (const char *)values + p->at;
    const double *real = at;
    if (p->type == ARG_REAL) text_printf(out, "%.6g", *real);
    else text_puts(out, equals ? equals + 1 : "");
    text_release(&pair);
}

static bool differs(const Parsed *want, const Parsed *ran, size_t i, Text *out) {
    const Arg *p = &want->info->params[i];
    Text a = {0}, b = {0};
    write_value(p, want->values, &a);
    write_value(p, ran->values, &b);
    bool other = strcmp(text_get(&a), text_get(&b)) != 0;
    if (other && out)
        text_printf(out, "%s%s=%s, not %s", out->length ? "; " : "", p->name, text_get(&b), text_get(&a));
    text_release(&a);
    text_release(&b);
    return other;
}

static void resolve(Parsed *p) {
    if (p->info->resolve) p->info->resolve(p->values);
}

// What is left open is as it ran: others may follow from it.
static void close_open(Parsed *want, const Parsed *ran) {
    for (size_t i = 0; i < want->info->param_count; i++) {
        const Arg *p = &want->info->params[i];
        Text value = {0};
        if (!want->open[i]) continue;
        write_value(p, ran->values, &value);
        args_set(p, 1, want->values, p->name, text_get(&value), NULL);
        text_release(&value);
    }
}

int method_text_differences(const char *text, const char *ran, Text *out) {
    Parsed want, got;
    int count = 0;
    if (!parse(&want, text, NULL)) return 0;
    if (parse(&got, ran, NULL)) {
        bool same = want.info == got.info;
        resolve(&got);
        if (same) close_open(&want, &got);
        resolve(&want);
        for (size_t i = 0; i < want.info->param_count && same; i++)
            count += !want.open[i] && differs(&want, &got, i, out);
        release(&got);
    }
    release(&want);
    return count;
}
