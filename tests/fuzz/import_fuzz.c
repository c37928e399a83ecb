// Lines of steps, of Spec-Bench's answers, and records of other programs: accepted ones are whole, others
// leave one line with its place.
#include "results/rows.h"
#include "results/transfer/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

// One for all inputs; each is taken back. Its files are gone at once: whoever has them open keeps them.
static Store *scratch_store(void) {
    static Store *store;
    static const char *const ENDS[] = {"", "-wal", "-shm"};
    char path[] = "/tmp/outpace-fuzz-XXXXXX", name[sizeof path + 8];
    if (store) return store;
    int fd = mkstemp(path);
    demand(fd >= 0);
    close(fd);
    demand((store = store_open(path, STORE_WRITE, NULL, NULL)) != NULL);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, ENDS[i]);
        unlink(name);
    }
    return store;
}

static void check(Store *s, const StoreImported *done) {
    static const char WRONG[] =
        "SELECT count(*) FROM sample AS s WHERE steps != (SELECT coalesce(sum(steps), s.steps) FROM"
        " sample_accept WHERE sample_id = s.id) OR tokens < 0 OR decode_ns < 0";
    int64_t n = -1;
    demand(done->samples > 0 || done->promised == 0);
    demand(rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, NULL) && n == done->samples);
    demand(rows_one_int(s, WRONG, 0, &n, NULL) && n == 0);
}

// By the first byte.
static bool import(Store *s, char kind, const StoreImport *from, StoreImported *done, Error *e) {
    switch (kind) {
    case 'b': return store_import_records(s, RECORDS_SPECBENCH, from, NULL, done, e);
    case 'v': return store_import_records(s, RECORDS_VLLM, from, NULL, done, e);
    case 'd': return store_import_records(s, RECORDS_SPECDEC, from, NULL, done, e);
    case 'f': return store_import_records(s, RECORDS_SPECFORGE, from, NULL, done, e);
    default: return store_import_steps(s, from, done, e);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char *words[] = {"outpace"};
    if (size == 0 || !memchr(data, '{', size)) return 0; // no line can be an object
    Store *s = scratch_store();
    StoreImport from = {
        .path = "fuzz", .bytes = (const char *)data + 1, .size = size - 1, .name = "fuzz", .argc = 1};
    StoreImported done;
    Error e = {0};
    from.argv = words;
    from.model = from.dataset = from.method = "x";
    demand(store_begin(s, &e));
    bool ok = import(s, (char)data[0], &from, &done, &e);
    if (ok) check(s, &done);
    else demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz") && !strchr(e.text, '\n'));
    store_rollback(s);
    return 0;
}
