// Opening: config.json, then generation_config.json, then the shards that the index names (or the one file),
// then every weight by role. Shards stay mapped for the model's life; their headers do not.
#include "engine/model/model.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"

#include <stdio.h>
#include <string.h>

enum { MAX_JSON = 64 << 20, MAX_PATH = 4096 };

static bool join(char out[MAX_PATH], const char *dir, const char *name, Error *e) {
    int n = snprintf(out, MAX_PATH, "%s/%s", dir, name);
    return (n >= 0 && n < MAX_PATH) || error_input(e, "the path '%.200s.../%s' is too long", dir, name);
}

bool model_open_config(Model *m, const char *dir, Error *e) {
    *m = (Model){0};
    char path[MAX_PATH], *bytes = NULL;
    size_t n;
    if (!join(path, dir, "config.json", e)) return false;
    if (!file_exists(path))
        return error_input(e, "'%s' has no readable config.json: give a Hugging Face model directory", dir);
    if (!file_read(path, MAX_JSON, &bytes, &n, e)) return false;
    bool ok = config_parse(m, bytes, n, path, e);
    mem_free(bytes);
    if (ok && join(path, dir, "generation_config.json", e) && file_exists(path)) {
        ok = file_read(path, MAX_JSON, &bytes, &n, e);
        ok = ok && config_parse_generation(m, bytes, n, path, e);
        if (bytes) mem_free(bytes);
    }
    if (!ok) *m = (Model){0};
    return ok;
}

// The files of a model, each name once.
typedef struct {
    char names[MODEL_MAX_SHARDS][256];
    int count;
} ShardList;

static bool add_shard(ShardList *list, const char *name, const char *place, Error *e) {
    if (strchr(name, '/') || strcmp(name, "..") == 0 || !name[0] || strlen(name) >= sizeof list->names[0])
        return error_input(e, "'%s' names the shard '%.200s': a plain file name beside it is allowed only",
                           place, name);
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0) return true;
    if (list->count == MODEL_MAX_SHARDS)
        return error_input(e, "'%s' names more than %d shards", place, MODEL_MAX_SHARDS);
    snprintf(list->names[list->count++], sizeof list->names[0], "%s", name);
    return true;
}

static bool read_index(ShardList *list, const char *path, Error *e) {
    json_t *root = json_from_file(path, MAX_JSON, e);
    if (!root) return false;
    json_t *map = json_object_get(root, "weight_map"), *v;
    const char *key;
    bool ok = json_is_object(map) || error_input(e, "'%s' must hold an object 'weight_map'", path);
    if (ok) json_object_foreach(map, key, v) {
            if (!json_is_string(v))
                ok = error_input(e, "'weight_map' of '%s' has no file for '%.100s'", path, key);
            ok = ok && add_shard(list, json_string_value(v), path, e);
            if (!ok) break;
        }
    if (ok && list->count == 0) ok = error_input(e, "'weight_map' of '%s' is empty", path);
    json_decref(root);
    return ok;
}

static bool list_shards(ShardList *list, const char *dir, Error *e) {
    char path[MAX_PATH];
    if (!join(path, dir, "model.safetensors", e)) return false;
    if (file_exists(path)) return add_shard(list, "model.safetensors", path, e);
    if (!join(path, dir, "model.safetensors.index.json", e)) return false;
    if (file_exists(path)) return read_index(list, path, e);
    return error_input(
        e,
        "'%s' has neither model.safetensors nor model.safetensors.index.json; other weight files are "
        "not read: save the model as safetensors",
        dir);
}

static bool open_shards(Model *m, const ShardList *list, Shard *shards, const char *dir, Error *e) {
    for (int i = 0; i < list->count; i++) {
        char path[MAX_PATH];
        FileView *view = &m->shards[i];
        if (!join(path, dir, list->names[i], e) || !file_map(path, view, e)) return false;
        m->shard_count = i + 1;
        shards[i] = (Shard){.data = view->data, .name = list->names[i]};
        if (!safetensors_parse(view->data, view->size, path, &shards[i].header, e)) return false;
    }
    return true;
}

static bool load(Model *m, const char *dir, ShardList *list, Shard *shards, Error *e) {
    m->layers = mem_alloc((size_t)m->shape.layers, sizeof *m->layers);
    m->shards = mem_alloc(MODEL_MAX_SHARDS, sizeof *m->shards);
    if (!m->layers || !m->shards || !list || !shards)
        return error_system(e, "out of memory opening '%s'", dir);
    bool ok = list_shards(list, dir, e) && open_shards(m, list, shards, dir, e) &&
              weights_bind(m, shards, list->count, dir, e);
    for (int i = 0; i < list->count; i++) safetensors_release(&shards[i].header);
    return ok;
}

bool model_open(Model *m, const char *dir, Error *e) {
    if (!model_open_config(m, dir, e)) return false;
    ShardList *list = mem_alloc(1, sizeof *list);
    Shard *shards = mem_alloc(MODEL_MAX_SHARDS, sizeof *shards);
    bool ok = load(m, dir, list, shards, e);
    mem_free(list);
    mem_free(shards);
    if (!ok) model_close(m);
    return ok;
}

void model_close(Model *m) {
    for (int i = 0; i < m->shard_count; i++) file_unmap(&m->shards[i]);
    mem_free(m->shards);
    mem_free(m->layers);
    *m = (Model){0};
}

size_t model_bytes(const Model *m) {
    size_t bytes = tensor_bytes(&m->embedding) + tensor_bytes(&m->final_norm);
    if (m->head.data != m->embedding.data) bytes += tensor_bytes(&m->head);
    for (int layer = 0; layer < m->shape.layers; layer++)
        for (int i = 0; i < LAYER_WEIGHTS; i++) bytes += tensor_bytes(weights_field(&m->layers[layer], i));
    return bytes;
}
