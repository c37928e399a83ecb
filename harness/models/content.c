#include "harness/models/content.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/model/adapter.h"
#include "engine/model/identity.h"

bool content_adapter(const Model *target, const char *dir, char out[SHA256_TEXT], Error *e) {
    Adapter adapter;
    if (!adapter_open(&adapter, target, dir, e)) return false;
    Model file = {.shards = &adapter.file, .shard_count = 1};
    bool ok = model_identity(&file, dir, out, e);
    adapter_close(&adapter);
    return ok;
}

bool content_model(const char *dir, bool weights, char out[SHA256_TEXT], Error *e) {
    Model m;
    if (!(weights ? model_open(&m, dir, e) : model_open_config(&m, dir, e))) return false;
    bool ok = model_identity(&m, dir, out, e);
    model_close(&m);
    return ok;
}

bool content_tokenizer(const char *dir, char out[SHA256_TEXT], Error *e) {
    char *path = file_path(dir, "tokenizer.json");
    if (path && !file_exists(path)) {
        mem_free(path);
        path = file_path(dir, "tokenizer.model");
    }
    bool ok = path ? sha256_file(path, out, e) : error_system(e, "out of memory");
    mem_free(path);
    return ok;
}
