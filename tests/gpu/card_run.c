// What the parts of `card` share: their options, a card in use, the time of its work, and the JSON that they
// write.
#include "tests/gpu/card.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/engine.h"
#include "harness/machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_MOST = 1000 };

bool card_options(int argc, char **argv, CardOptions *out, Error *e) {
    *out = (CardOptions){0};
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "--small") == 0) out->small = true;
        else if (value && strcmp(argv[i], "-o") == 0) out->out = argv[++i];
        else if (value && strcmp(argv[i], "--choice") == 0) out->choice = argv[++i];
        else return error_input(e, "card %s: '%s' is not an option, or lacks its value", argv[0], argv[i]);
    }
    return true;
}

bool card_ok(int code, const char *what, Error *e) {
    return code == 0 || error_system(e, "cuda:0: %s: %s", what, gpu_error(code));
}

bool card_open(Card *c, bool small, Error *e) {
    int count;
    *c = (Card){.small = small};
    if (!card_ok(gpu_count(&count), "cannot be counted", e)) return false;
    if (count == 0) return error_system(e, "there is no GPU");
    return card_ok(gpu_use(0), "cannot be used", e) && card_ok(gpu_facts(0, &c->facts), "has no facts", e) &&
           card_ok(gpu_stream_open(&c->stream), "no stream", e) &&
           card_ok(gpu_event_open(&c->from), "no event", e) && card_ok(gpu_event_open(&c->to), "no event", e);
}

void card_close(Card *c) {
    if (c->stream) gpu_stream_wait(c->stream);
    if (c->from) gpu_event_close(c->from);
    if (c->to) gpu_event_close(c->to);
    if (c->stream) gpu_stream_close(c->stream);
}

static bool time_once(Card *c, CardWork *work, void *with, double *seconds, Error *e) {
    if (!card_ok(gpu_event_record(c->from, c->stream), "cannot mark its work", e)) return false;
    work(with, c->stream);
    return card_ok(gpu_launched(), "a launch was refused", e) &&
           card_ok(gpu_event_record(c->to, c->stream), "cannot mark its work", e) &&
           card_ok(gpu_event_wait(c->to), "its work failed", e) &&
           card_ok(gpu_event_seconds(c->from, c->to, seconds), "cannot time its work", e);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool card_time(Card *c, CardWork *work, void *with, int runs, double seconds, double *median, Error *e) {
    double *times = mem_new(TIMES_MOST, sizeof *times), spent = 0;
    int n = 0;
    bool ok = time_once(c, work, with, &times[0], e);
    while (ok && n < TIMES_MOST && (n < runs || spent < seconds)) {
        ok = time_once(c, work, with, &times[n], e);
        spent += times[n++];
    }
    if (ok) {
        qsort(times, (size_t)n, sizeof *times, ascending);
        *median = times[n / 2];
    }
    mem_free(times);
    return ok;
}

json_t *card_facts_json(const Card *c) {
    const GpuFacts *f = &c->facts;
    return json_pack("{s:s, s:s, s:f, s:i, s:I, s:I, s:I, s:i, s:i}", "name", f->name, "uuid", f->uuid,
                     "capability", f->major + 0.1 * f->minor, "multiprocessors", f->multiprocessors,
                     "shared_bytes", (json_int_t)f->shared_bytes, "total_bytes", (json_int_t)f->total_bytes,
                     "free_bytes", (json_int_t)f->free_bytes, "driver", f->driver, "runtime", f->runtime);
}

json_t *card_gauge_json(void) {
    Gauge g;
    return engine_gauge("cuda", 0, &g, NULL) ? gauges_json(&g) : json_null();
}

bool card_write(json_t *root, const char *path, Error *e) {
    const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(6);
    bool ok = path ? json_dump_file(root, path, flags) == 0 : json_dumpf(root, stdout, flags) == 0;
    json_decref(root);
    return ok || error_system(e, "cannot write '%s'", path ? path : "stdout");
}

// JSON as it is, also of lines; text that isn't UTF-8 is left out.
static json_t *value_of(const char *path) {
    enum { MOST = 8 << 20 };
    char *bytes = NULL;
    size_t n;
    json_t *value = json_load_file(path, 0, NULL);
    if (value || !file_read(path, MOST, &bytes, &n, NULL)) return value ? value : json_null();
    value = json_stringn(bytes, n);
    mem_free(bytes);
    return value ? value : json_null();
}

int card_join(int argc, char **argv) {
    Error e = {0};
    json_t *root = json_object();
    for (int i = 2; i < argc; i++) {
        char key[256];
        const char *equals = strchr(argv[i], '='), *slash;
        if (!equals || snprintf(key, sizeof key, "%.*s", (int)(equals - argv[i]), argv[i]) >= (int)sizeof key)
            continue;
        json_t *into = root;
        slash = strchr(key, '/');
        if (slash) {
            key[slash - key] = 0;
            if (!json_object_get(root, key)) json_object_set_new(root, key, json_object());
            into = json_object_get(root, key);
        }
        json_object_set_new(into, slash ? slash + 1 : key, value_of(equals + 1));
    }
    bool ok = argc > 1 && card_write(root, argv[1], &e);
    if (!ok) fprintf(stderr, "%s\n", e.text);
    return ok ? 0 : 1;
}
