// Opens config.json, then generation_config.json, then the shards in the index (or the one file), and binds
// every weight. Shards stay mapped for the model's life, their headers don't.
//
// Invariant: the tensors of an open model are inside its files, or rearranged.
#include "engine/model/model.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// A parsed JSON takes up to eighty times the memory of its text; real files have less than a tenth of this.
// An index of 36,000 tensors (94 layers of 128 experts) has 3.4 MB.
enum { MAX_JSON = 1 << 20, MAX_INDEX = 4 << 20, MAX_PATH = 4096 };

static const char INDEX[] = "model.safetensors.index.json";

bool shards_hold(const ModelWeights *w, const Tensor *t) {
    for (size_t i = 0; i < w->rearranged.count; i++)
        if (t->data == w->rearranged.list[i]) return true;
    for (int i = 0; i < w->file_count; i++) {
        const FileView *view = &w->files[i].view;
        size_t at = (size_t)t->data - (size_t)view->data;
        if (at < view->size && (size_t)t->rows * tensor_row_bytes(t) <= view->size - at) return true;
    }
    return false;
}

static void model_check(const Model *m, const ModelWeights *w) {
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        const Tensor *t = weight_tensor(m, s.layer, s.expert, s.which);
        UNUSED bool inside = shards_hold(w, t);
        if (!s.name[0] && s.which == W_HEAD) assert(t->data == m->embedding.data);
        else if (!s.name[0] && s.which != W_MLP_NORM && s.which != W_MLP_NORM_BIAS) assert(!t->data);
        else if (!s.name[0]) assert(!t->data || m->shape.mlp_input == MLP_SHARES_NORM);
        else assert(t->rows == s.rows && t->columns == s.columns && inside);
    }
}

static bool join(char out[MAX_PATH], const char *dir, const char *name, Error *e) {
    int n = snprintf(out, MAX_PATH, "%s/%s", dir, name);
    return (n >= 0 && n < MAX_PATH) || error_input(e, "the path '%.200s.../%s' is too long", dir, name);
}

// People often give the name of a model on the Hub instead of a path.
static bool has_no_config(const char *dir, Error *e) {
    char inner[MAX_PATH];
    if (!join(inner, dir, "snapshots", e)) return false;
    if (!file_exists(dir))
        return error_input(
            e,
            "there is no directory '%s': give the directory of a Hugging Face model; nothing is downloaded",
            dir);
    if (file_exists(inner))
        return error_input(e, "'%s' is an entry of the Hub's cache: give the folder in its snapshots", dir);
    return error_input(e, "'%s' has no readable config.json: give a Hugging Face model directory", dir);
}

// The path of one of the files, for mem_free.
static char *path_of(const ModelWeights *w, const WeightFile *file) {
    return gguf_named(w->dir) ? mem_text(w->dir, strlen(w->dir)) : file_path(w->dir, file->name);
}

// --- GGUF: config and weights in one file

static bool bind_gguf(Model *m, ModelWeights *w, const Gguf *g, const char *path, FileView *view, Error *e) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    LOCAL_MEMORY char *folder = file_directory(path);
    Shard shard = {safetensors_of_gguf(g), view->data, name};
    weights_take_layers(m, w);
    w->files = mem_new(1, sizeof *w->files);
    w->files[w->file_count++] = (WeightFile){.view = *view, .header = g->header};
    *view = (FileView){0};
    snprintf(w->files[0].name, SHARD_NAME, "%s", name);
    bool ok = weights_bind(m, w, &shard, 1, folder, e);
    safetensors_release(&shard.header);
    return ok;
}

// w NULL: the config only.
static bool open_gguf(Model *m, ModelWeights *w, const char *path, Error *e) {
    LOCAL(file_unmap) FileView view = {0};
    LOCAL(gguf_release) Gguf g = {0};
    return file_map(path, &view, e) && gguf_parse(view.data, view.size, path, &g, e) &&
           config_read_gguf(m, &g, view.data, e) && (!w || bind_gguf(m, w, &g, path, &view, e));
}

// --- a directory

static bool open_config(Model *m, const char *dir, Error *e) {
    char path[MAX_PATH], *bytes = NULL;
    size_t n;
    if (!join(path, dir, "config.json", e)) return false;
    if (!file_exists(path)) return has_no_config(dir, e);
    if (!file_read(path, MAX_JSON, &bytes, &n, e)) return false;
    bool ok = config_parse(m, bytes, n, path, e);
    mem_free(bytes);
    if (ok && join(path, dir, "generation_config.json", e) && file_exists(path)) {
        ok = file_read(path, MAX_JSON, &bytes, &n, e);
        ok = ok && config_parse_generation(m, bytes, n, path, e);
        if (bytes) mem_free(bytes);
    }
    return ok;
}

bool model_open_config(Model *m, const char *dir, Error *e) {
    *m = (Model){0};
    bool ok = gguf_named(dir) ? open_gguf(m, NULL, dir, e) : open_config(m, dir, e);
    if (!ok) *m = (Model){0};
    return ok;
}

// Adds a file of weights, each name once.
static bool add_shard(ModelWeights *w, const char *name, const char *place, Error *e) {
    if (strchr(name, '/') || strcmp(name, "..") == 0 || strcmp(name, ".") == 0 || !name[0] ||
        strlen(name) >= SHARD_NAME)
        return error_input(
            e, "'%s' names the shard '%.200s': only a plain file name in the same directory is allowed",
            place, name);
    for (int i = 0; i < w->file_count; i++)
        if (strcmp(w->files[i].name, name) == 0) return true;
    if (w->file_count == MODEL_MAX_SHARDS)
        return error_input(e, "'%s' names more than %d shards", place, MODEL_MAX_SHARDS);
    snprintf(w->files[w->file_count++].name, SHARD_NAME, "%s", name);
    return true;
}

static bool read_index(ModelWeights *w, const json_t *index, const char *path, Error *e) {
    json_t *map = json_object_get(index, "weight_map"), *v;
    const char *key;
    if (!json_is_object(map) || json_object_size(map) == 0)
        return error_input(e, "'%s' must hold an object 'weight_map' with a file for each tensor", path);
    json_object_foreach(map, key, v) {
        if (!json_is_string(v))
            return error_input(e, "'weight_map' of '%s' has no file for '%.100s'", path, key);
        if (!add_shard(w, json_string_value(v), path, e)) return false;
    }
    return true;
}

// *index stays NULL if all weights are in one file.
static bool list_shards(ModelWeights *w, const char *dir, json_t **index, Error *e) {
    char path[MAX_PATH];
    if (!join(path, dir, "model.safetensors", e)) return false;
    if (file_exists(path)) return add_shard(w, "model.safetensors", path, e);
    if (!join(path, dir, INDEX, e)) return false;
    if (file_exists(path))
        return (*index = json_from_file(path, MAX_INDEX, e)) && read_index(w, *index, path, e);
    return error_input(e,
                       "'%s' has neither model.safetensors nor %s; other weight files are "
                       "not read: save the model as safetensors",
                       dir, INDEX);
}

static bool open_shards(ModelWeights *w, Shard *shards, const char *dir, Error *e) {
    for (int i = 0; i < w->file_count; i++) {
        char path[MAX_PATH];
        WeightFile *file = &w->files[i];
        if (!join(path, dir, file->name, e) || !file_map(path, &file->view, e)) return false;
        shards[i] = (Shard){.data = file->view.data, .name = file->name};
        if (!safetensors_parse(file->view.data, file->view.size, path, &shards[i].header, e)) return false;
        file->header = safetensors_data(file->view.data);
    }
    return true;
}

// The index and the shards must agree. This finds a shard of another model, and two that were swapped.
static bool check_index(const json_t *index, const Shard *shards, int count, const char *dir, Error *e) {
    json_t *map = json_object_get(index, "weight_map"), *v;
    const char *key;
    json_object_foreach(map, key, v) {
        int i = 0;
        while (i < count && strcmp(shards[i].name, json_string_value(v)) != 0) i++;
        if (i == count || !safetensors_find(&shards[i].header, key))
            return error_input(
                e, "'%s/%s' places the tensor '%.150s' in '%s', which doesn't have it; fetch both again", dir,
                INDEX, key, json_string_value(v));
    }
    return true;
}

bool shards_open(ModelWeights *w, const char *dir, Shard *shards, Error *e) {
    json_auto_t *index = NULL;
    w->files = mem_new(MODEL_MAX_SHARDS, sizeof *w->files);
    return list_shards(w, dir, &index, e) && open_shards(w, shards, dir, e) &&
           check_index(index, shards, w->file_count, dir, e);
}

void shards_close(const ModelWeights *w, Shard *shards) {
    for (int i = 0; i < w->file_count; i++) safetensors_release(&shards[i].header);
    mem_free(shards);
}

static bool open_directory(Model *m, ModelWeights *w, const char *dir, Error *e) {
    if (!open_config(m, dir, e)) return false;
    Shard *shards = mem_new(MODEL_MAX_SHARDS, sizeof *shards);
    weights_take_layers(m, w);
    bool ok = shards_open(w, dir, shards, e) && weights_bind(m, w, shards, w->file_count, dir, e);
    shards_close(w, shards);
    return ok;
}

static bool open_as(Model *m, ModelWeights *w, const char *dir, bool exact, Error *e) {
    *m = (Model){0};
    *w = (ModelWeights){.dir = mem_text(dir, strlen(dir)), .exact = exact};
    bool ok = (gguf_named(dir) ? open_gguf : open_directory)(m, w, dir, e);
    if (ok && exact && m->packing.form)
        ok = error_input(e, "the weights of '%s' are packed: exact values are those of GGUF files only", dir);
    if (ok) {
        model_check(m, w);
        return true;
    }
    model_close(w);
    *m = (Model){0};
    return false;
}

bool model_open(Model *m, ModelWeights *w, const char *dir, Error *e) { return open_as(m, w, dir, false, e); }

bool model_open_exact(Model *m, ModelWeights *w, const char *dir, Error *e) {
    return open_as(m, w, dir, true, e);
}

static void move(Tensor *t, const FileView *from, const FileView *to) {
    size_t at = (size_t)t->data - (size_t)from->data; // of another file: beyond it
    if (at < from->size) t->data = to->data + at;
    at = (size_t)t->codes.scales - (size_t)from->data;
    if (t->codes.scales && at < from->size) t->codes.scales = to->data + at;
}

// Copies the file so that its first tensor begins a cache line. Files of other programs begin tensors at any
// multiple of eight, and are read more slowly.
static bool hold_shard(Model *m, WeightFile *file, const char *path, const Progress *progress, Error *e) {
    FileView mapped = file->view;
    if (!file_hold(path, &file->view, file->header, progress, e)) return false;
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        Tensor *t = (Tensor *)(uintptr_t)weight_tensor(m, s.layer, s.expert, s.which);
        if (t->data) move(t, &mapped, &file->view);
    }
    return true;
}

bool model_hold(Model *m, ModelWeights *w, const Progress *progress, Error *e) {
    bool coded = m->bits || m->valued, ok = true; // if so, nearly all of the weights are in memory already
    for (int i = 0; ok && i < w->file_count && !coded; i++) {
        LOCAL_MEMORY char *path = path_of(w, &w->files[i]);
        ok = hold_shard(m, &w->files[i], path, progress, e);
    }
    if (!ok) return false;
    w->held = true;
    model_check(m, w);
    return true;
}

bool model_is_unchanged(const ModelWeights *w, Error *e) {
    bool ok = true;
    for (int i = 0; ok && i < w->file_count; i++) {
        LOCAL_MEMORY char *path = path_of(w, &w->files[i]);
        ok = file_is_unchanged(&w->files[i].view, path, e);
    }
    return ok;
}

void model_close(ModelWeights *w) {
    for (int i = 0; i < w->file_count; i++) file_unmap(&w->files[i].view);
    mem_free_all(&w->rearranged);
    MEM_FREE(w->files, w->layers, w->experts, w->dir);
    if (w->numbers) w->free_numbers(w->numbers);
    *w = (ModelWeights){0};
}

size_t model_layer_bytes(const Model *m, int layer) {
    size_t bytes = 0;
    for (int i = 0; i < LAYER_WEIGHTS; i++) bytes += tensor_bytes(&m->layers[layer].w[i]);
    return bytes;
}

size_t model_expert_bytes(const Model *m) {
    size_t most = 0;
    for (int layer = 0; m->layers && layer < m->shape.layers; layer++) {
        const Tensor *experts = m->layers[layer].experts;
        for (int i = 0; experts && i < m->shape.experts.count; i++, experts += EXPERT_WEIGHTS) {
            size_t bytes = 0;
            for (int k = 0; k < EXPERT_WEIGHTS; k++) bytes += tensor_bytes(&experts[k]);
            if (bytes > most) most = bytes;
        }
    }
    return most;
}

size_t model_fc_bytes(const Model *m) {
    return tensor_bytes(&m->fc) + tensor_bytes(&m->fc_bias) + tensor_bytes(&m->token_norm) +
           tensor_bytes(&m->fc_norm) + tensor_bytes(&m->state_norm);
}

size_t model_bytes(const Model *m) {
    size_t bytes = 0;
    for (int i = 0; m->layers && i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        const Tensor *t = weight_tensor(m, s.layer, s.expert, s.which);
        if (t != &m->head || t->data != m->embedding.data) bytes += tensor_bytes(t);
    }
    return bytes;
}

size_t model_expected_bytes(const Model *m) {
    size_t count = shape_parameters(&m->shape);
    return m->bits ? count * (size_t)m->bits / 8 + count / (size_t)m->group * 2
                   : count * dtype_size(m->dtype);
}

enum { BITS_MOST = 8 }; // of codes

const char *model_dtype_name(const Model *m) {
    size_t numbers[BITS_MOST + 1] = {0}; // by bits; 0: no codes
    int best = m->bits;
    for (int i = 0; m->layers && i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        const Tensor *t = weight_tensor(m, s.layer, s.expert, s.which);
        if (s.layer >= 0 && t->data) numbers[t->codes.bits] += (size_t)t->rows * (size_t)t->columns;
    }
    for (int bits = 0; bits <= BITS_MOST; bits++)
        if (numbers[bits] > numbers[best]) best = bits;
    static const char *const names[BITS_MOST + 1] = {[4] = "Q4", [5] = "Q5", [6] = "Q6", [8] = "Q8"};
    return names[best] ? names[best] : dtype_name(m->dtype);
}

const Tensor *model_coded(const Model *m) {
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        const Tensor *t = weight_tensor(m, s.layer, s.expert, s.which);
        if (t->data && t->codes.bits) return t;
    }
    return NULL;
}

// The share of the square sum in which two rows of numbers may differ, if both are the codes of one.
static const double SAME_CODES = 0.05;

// Heads of their own differ from the embedding in their first values, so that only a repeated one is read.
size_t model_repeated_parameters(const Model *m) {
    const Tensor *a = &m->embedding, *b = &m->head;
    if (!a->data || !b->data || a->data == b->data || a->rows != b->rows || a->columns != b->columns)
        return 0;
    size_t rows = (size_t)a->rows, columns = (size_t)a->columns;
    double most = a->codes.bits || b->codes.bits ? SAME_CODES : 0;
    for (size_t row = 0; row<rows; row += most> 0 ? rows / 100 + 1 : 1) { // of codes some rows are enough
        double apart = 0, all = 0;
        for (size_t i = 0; i < columns; i++) {
            double x = tensor_value(a, row, i), y = tensor_value(b, row, i);
            apart += (x - y) * (x - y);
            all += x * x;
        }
        if (apart > most * all) return 0;
    }
    return rows * columns;
}

// --- description

static void describe_rope(const Rope *r, int head_dim, Text *out) {
    static const char *const kinds[] = {"plain", "linear", "llama3", "longrope", "yarn"};
    text_printf(out, "rope            %s, theta %g", kinds[r->kind], r->theta);
    if (r->kind == ROPE_LINEAR || r->kind == ROPE_LLAMA3 || r->kind == ROPE_YARN)
        text_printf(out, ", factor %g", r->factor);
    if (r->kind == ROPE_LONGROPE) text_printf(out, ", stretched beyond %d", r->original_context);
    if (2 * r->pairs < head_dim) text_printf(out, ", of %d in %d dimensions", 2 * r->pairs, head_dim);
    if (r->neighbours) text_puts(out, ", of neighbouring dimensions");
    text_puts(out, "\n");
}

static void describe_experts(const Shape *s, Text *out) {
    const Experts *x = &s->experts;
    if (!x->count) return;
    text_printf(out, "experts         %d of width %d in %d layers, %d of them for a token%s", x->count,
                x->width, layers_in(&s->sparse, s->layers), x->chosen,
                x->renormalised ? ", renormalised" : "");
    if (x->shared_width) text_printf(out, "; one of width %d for all", x->shared_width);
    text_puts(out, "\n");
}

// A line of the differences between a layer and one of Llama; none if there aren't any.
static void describe_layer(const Shape *s, Text *out) {
    static const char *const activations[] = {"silu", "gelu_tanh", "gelu", "relu2"};
    LOCAL_TEXT t = {0};
    if (s->norm_kind == NORM_LAYER) text_puts(&t, ", LayerNorm");
    if (s->norm_place == NORMS_AFTER) text_puts(&t, ", norms of outputs only");
    if (s->norm_place == NORMS_AROUND) text_puts(&t, ", norms of inputs and outputs");
    if (s->mlp_input != MLP_AFTER) text_puts(&t, ", attention and MLP in parallel");
    if (s->ungated) text_puts(&t, ", MLP without gate");
    if (s->activation != ACTIVATION_SILU) text_printf(&t, ", %s", activations[s->activation]);
    if (s->score_cap > 0) text_printf(&t, ", scores capped at %g", (double)s->score_cap);
    if (s->logit_cap > 0) text_printf(&t, ", logits capped at %g", (double)s->logit_cap);
    if (s->embedding_scale != 0) text_printf(&t, ", embedding times %g", (double)s->embedding_scale);
    if (s->residual_scale != 0) text_printf(&t, ", outputs times %g", (double)s->residual_scale);
    if (s->score_scale != 0) text_printf(&t, ", scores times %g", (double)s->score_scale);
    if (s->logit_scale != 0) text_printf(&t, ", logits times %g", (double)s->logit_scale);
    if (s->positions) text_puts(&t, ", learned positions");
    int unrotated = layers_in(&s->unrotated, s->layers);
    if (unrotated) text_printf(&t, ", %d layers without rope", unrotated);
    if (t.length) text_printf(out, "                %s\n", text_get(&t) + 2);
}

// How many weights are codes, in files that mix formats.
static void describe_format(const Model *m, Text *out) {
    static const char *const packings[] = {"GGUF", "AWQ", "GPTQ", "compressed-tensors"};
    int count[BITS_MOST + 1] = {0}; // by bits; 0: plain
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec w = weights_at(m, i);
        if (!w.name[0]) continue;
        count[weight_tensor(m, w.layer, w.expert, w.which)->codes.bits]++;
    }
    text_printf(out, "format          %s: ", packings[m->packing.form]);
    const char *what = " weights in codes";
    for (int bits = 1; bits <= BITS_MOST; bits++) {
        if (!count[bits]) continue;
        text_printf(out, "%d%s of %d bits, ", count[bits], what, bits);
        what = "";
    }
    text_printf(out, "%d plain\n", count[0] - m->valued);
    if (m->valued)
        text_printf(out, "                %d more were codes that no kernel knows: bf16 values in memory\n",
                    m->valued);
}

void model_describe(const Model *m, const ModelWeights *w, Text *out) {
    const Shape *s = &m->shape;
    int group = s->heads / s->kv_heads;
    if (m->stand_in[0]) text_printf(out, "stand-in        %s\n", m->stand_in);
    if (m->quantised[0]) text_printf(out, "quantised       %s\n", m->quantised);
    text_printf(out, "architecture    %s\n", m->architecture);
    size_t repeated = model_repeated_parameters(m);
    text_printf(out, "parameters      %.1f million", (double)(shape_parameters(s) - repeated) * 1e-6);
    if (s->experts.count)
        text_printf(out, ", %.1f million of them for a token",
                    (double)(shape_active_parameters(s) - repeated) * 1e-6);
    text_printf(out, "\nlayers          %d of width %d", s->layers, s->width);
    if (layers_in(&s->sparse, s->layers) < s->layers) text_printf(out, ", MLP %d", s->mlp_width);
    if (m->unused_layers) text_printf(out, "; the files hold %d more, which are left out", m->unused_layers);
    text_puts(out, m->mtp_layers ? ", and an MTP layer (--method mtp)\n" : "\n");
    describe_experts(s, out);
    describe_layer(s, out);
    text_printf(out, "heads           %d of size %d, %d for keys (%d to one)%s\n", s->heads, s->head_dim,
                s->kv_heads, group, s->qk_norm ? ", q and k normed" : "");
    text_printf(out, "vocabulary      %d%s\n", s->vocab,
                s->tied_head ? ", head tied to the embedding"
                : repeated   ? ", head a copy of the embedding"
                             : "");
    if (s->real_vocab != s->vocab) text_printf(out, "                %d of them real\n", s->real_vocab);
    text_printf(out, "context         %d", s->context);
    if (s->window) text_printf(out, ", sliding window %d\n", s->window);
    else if (s->local_window)
        text_printf(out, ", sliding window %d in %d layers\n", s->local_window,
                    layers_in(&s->local, s->layers));
    else text_puts(out, ", no sliding window\n");
    describe_rope(&s->rope, s->head_dim, out);
    if (s->local_theta > 0)
        text_printf(out, "                theta %g in layers with a window\n", s->local_theta);
    text_printf(out, "special ids     bos %d, eos", m->bos);
    for (int i = 0; i < m->eos_count; i++) text_printf(out, " %d", m->eos[i]);
    text_puts(out, m->eos_count ? "\n" : " none\n");
    size_t position = 2 * (size_t)s->layers * (size_t)shape_kv_width(s) * 2;
    int kept = s->window && s->window < s->context ? s->window : s->context;
    text_printf(out, "cache           %zu bytes a position in bf16, %.2f GB at the full context\n", position,
                (double)position * kept * 1e-9);
    if (!m->layers) return;
    if (m->gguf.is || m->packing.form) describe_format(m, out);
    if (m->unfused)
        text_printf(out, "codes           %d bits, groups of %d; embedding and head %d bits\n", m->bits,
                    m->group, m->head.codes.bits);
    bool mixed = m->bits && !m->unfused; // another form, and another size, than the file's
    text_printf(out, "weights         %s, %.3f GB%s %d file%s\n", model_dtype_name(m),
                (double)model_bytes(m) * 1e-9, mixed ? " in memory, from" : " in", w->file_count,
                w->file_count == 1 ? "" : "s");
}

// --- identity

static void add_samples(const FileView *view, Text *out) {
    size_t whole = (size_t)IDENTITY_SAMPLES * IDENTITY_BYTES;
    if (view->size <= whole) {
        text_add(out, (const char *)view->data, view->size);
        return;
    }
    size_t last = view->size - IDENTITY_BYTES, step = last / (IDENTITY_SAMPLES - 1);
    for (size_t i = 0; i < IDENTITY_SAMPLES; i++) {
        size_t at = i + 1 < IDENTITY_SAMPLES ? i * step : last;
        text_add(out, (const char *)view->data + at, IDENTITY_BYTES);
    }
}

bool model_identity(const ModelWeights *w, const char *dir, char out[SHA256_TEXT], Error *e) {
    LOCAL_TEXT all = {0};
    if (w->numbers) text_puts(&all, w->numbers_config);
    else if (!gguf_named(dir)) {
        LOCAL_MEMORY char *config = NULL, *path = file_path(dir, "config.json");
        size_t n;
        if (!file_read(path, MAX_JSON, &config, &n, e)) return false;
        text_add(&all, config, n);
    }
    for (int i = 0; i < w->file_count && !w->numbers; i++) {
        const WeightFile *file = &w->files[i];
        // Name and size come first, so that no two lists of files give the same text.
        text_printf(&all, "\n%s\n%zu\n", file->name, file->view.size);
        text_add(&all, (const char *)file->view.data, file->header);
        add_samples(&file->view, &all);
    }
    return sha256_bytes(text_get(&all), all.length, out, e);
}
