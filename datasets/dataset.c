// Opening a dataset: find the bytes that the request names, turn them into rows and rows into prompts, then
// check, cut and order the prompts. After a failure the dataset is empty.
#include "datasets/datasets.h"

#include "datasets/format.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"

#include <stdlib.h>
#include <string.h>

static const size_t MOST_BYTES = (size_t)1 << 30;

typedef struct Loading {
    Dataset *d;
    const DatasetRequest *request;
    const Format *format; // NULL: the first row decides
    const Frame *frame;
} Loading;

// *out: whether the row, which is already added, belongs to the requested split.
static bool wanted(const Loading *l, const Row *row, bool *out, Error *e) {
    const char *name = l->request->split;
    *out = true;
    if (!name) return true;
    if (l->format->splits) {
        const FormatSplit *split = l->format->splits;
        while (split->name && strcmp(split->name, name) != 0) split++;
        if (!split->name)
            return error_input(e, "the format %s has no split '%s'; its first is '%s'", l->format->name, name,
                               l->format->splits->name);
        const char *id = l->d->prompts[l->d->count - 1].id;
        char *end;
        long n = strtol(id, &end, 10);
        *out = end != id && !*end && n >= split->first && n <= split->last;
        return true;
    }
    const json_t *split_name = row_find(row->json, "split", 5);
    if (!json_is_string(split_name))
        return row_error(row, "split", "is missing: without it, this file has no splits to ask for", e);
    *out = strcmp(json_string_value(split_name), name) == 0;
    return true;
}

// Whether the first rows of the file are all that is wanted. The others are checked, too; of these only ids
// are kept, until it is known that they differ.
static bool cut_as_written(const DatasetRequest *q) {
    return q->limit && (q->order == ORDER_WRITTEN || q->order == ORDER_FIRST_SHUFFLED);
}

static bool take_row(void *state, Row *row, Error *e) {
    Loading *l = state;
    bool keep;
    if (l->d->count == 0) { // the first row shows the format
        const char *colon = l->request->name ? strchr(l->request->name, ':') : NULL; // "NAME:FRAME"
        if (!l->format) l->format = format_of_row(row->json);
        if (!l->frame && colon && !(l->frame = format_frame(l->format, colon + 1, e))) return false;
    }
    row->format = l->format->name;
    row->keys = *l->format->keys ? l->format->keys : "prompt, or turns";
    if (!prompts_add(l->d, l->format, l->frame, row, e) || !wanted(l, row, &keep, e)) return false;
    size_t last = l->d->count - 1;
    bool cut = cut_as_written(l->request) && last >= l->request->limit;
    if (!keep || l->d->prompts[last].turn_count == 0 || (cut && !l->format->id)) prompts_cut(l->d, last);
    else if (cut) prompts_forget(&l->d->prompts[last]);
    return true;
}

static bool finish(Dataset *d, const DatasetRequest *q, bool by_set, Error *e) {
    if (!prompts_order(d, q, by_set, e)) return false;
    if (!by_set && q->limit) prompts_cut(d, q->limit);
    return prompts_hash(d, q->path != NULL, e);
}

static bool load(Dataset *d, const char *bytes, size_t n, const char *place, const DatasetRequest *q,
                 Error *e) {
    Loading l = {.d = d, .request = q};
    const char *format = q->format ? q->format : text_ends(place, ".txt") ? "text" : NULL;
    if (format && !(l.format = format_find(format, &l.frame, e))) return false;
    RowsKind kind = ROWS_TEXT;
    if (!(l.format && l.format->is_text) && !rows_kind(bytes, n, place, &kind, e)) return false;
    if (!rows_each(bytes, n, place, kind, take_row, &l, e)) return false;
    if (d->count == 0)
        return q->split && l.format ? error_input(e, "'%s' has no row of the split '%s'", place, q->split)
                                    : error_input(e, "'%s' has no rows with prompts", place);
    if (!prompts_check_ids(d, place, e)) return false;
    if (cut_as_written(q)) prompts_cut(d, q->limit);
    if (q->turns) prompts_cut_turns(d, q->turns);
    return finish(d, q, false, e);
}

bool dataset_parse(Dataset *d, const char *bytes, size_t n, const char *place, const DatasetRequest *request,
                   Error *e) {
    LOCAL_MEMORY char *unpacked = NULL;
    size_t size = n;
    bool ok = true;
    *d = (Dataset){.name = mem_text(request->name, strlen(request->name))};
    if (gzip_is(bytes, n)) ok = gzip_expand(bytes, n, place, MOST_UNPACKED, &unpacked, &size, e);
    ok = ok && load(d, unpacked ? unpacked : bytes, size, place, request, e);
    if (!ok) dataset_release(d);
    return ok;
}

static bool open_path(Dataset *d, const char *path, const DatasetRequest *q, Error *e) {
    LOCAL_MEMORY char *bytes = NULL;
    size_t n;
    if (!file_read(path, MOST_BYTES, &bytes, &n, e)) return false;
    return dataset_parse(d, bytes, n, path, q, e);
}

static bool not_found(const KnownFile *file, const DatasetRequest *q, Error *e) {
    const char *name = q->name;
    if (known_is(file->url, "-", 1))
        return error_input(
            e, "the dataset '%s' is not there: set OUTPACE_DATA to a folder that has '%.*s' (%.*s)", name,
            (int)file->file.n, file->file.at, (int)file->about.n, file->about.at);
    if (!q->folder)
        return error_input(e,
                           "where is the dataset '%s'? set OUTPACE_DATA to a folder that has '%.*s', as "
                           "'datasets/fetch FOLDER %.*s' makes it",
                           name, (int)file->file.n, file->file.at, (int)file->name.n, file->name.at);
    return error_input(e, "the dataset '%s' is not in '%s': 'datasets/fetch FOLDER %.*s' puts '%.*s' there",
                       name, q->folder, (int)file->name.n, file->name.at, (int)file->file.n, file->file.at);
}

static bool open_known(Dataset *d, const DatasetRequest *q, Error *e) {
    KnownFile file;
    DatasetRequest found = *q;
    if (strchr(q->name, '/')) {
        found.path = q->name;
        return open_path(d, q->name, &found, e);
    }
    if (!known_find(q->name, q->split, &file, e)) return false;
    if (!known_is(file.split, "-", 1)) found.split = NULL; // the file is the split
    if (file.content) return dataset_parse(d, file.content, file.content_size, q->name, &found, e);
    if (found.folder && !*found.folder) found.folder = NULL; // the variable is set, but empty
    LOCAL_MEMORY char *path = found.folder ? known_path(&file, found.folder) : NULL;
    if (!path) return not_found(&file, &found, e);
    LOCAL_MEMORY char *format = mem_text(file.format.at, file.format.n);
    found.format = format;
    bool changed = false;
    bool ok = known_changed(&file, path, &changed, e) && open_path(d, path, &found, e);
    d->changed = changed;
    return ok;
}

static bool open_parts(Dataset *d, const DatasetRequest *q, Error *e) {
    bool ok = true;
    *d = (Dataset){.name = mem_text(q->name, strlen(q->name))};
    for (int i = 0; ok && i < q->part_count; i++) {
        LOCAL(dataset_release) Dataset part = {0};
        DatasetRequest of = *q;
        of.name = q->parts[i];
        if (of.order != ORDER_SHUFFLED) of.order = ORDER_WRITTEN;
        ok = open_known(&part, &of, e) || error_within(e, "'%s'", q->name);
        prompts_move(d, &part);
        d->changed = d->changed || part.changed;
    }
    ok = ok && prompts_check_ids(d, q->name, e) && finish(d, q, true, e);
    if (!ok) dataset_release(d);
    return ok;
}

bool dataset_open(Dataset *d, const DatasetRequest *request, Error *e) {
    *d = (Dataset){0};
    if (request->part_count) return open_parts(d, request, e);
    if (request->path) return open_path(d, request->path, request, e);
    return open_known(d, request, e);
}
