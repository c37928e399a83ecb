#include "datasets/prompts.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PROMPTS = 1 << 24, MOST_TURNS = 1 << 10 };

static bool no_memory(const char *file, Error *e) { return error_system(e, "out of memory for '%s'", file); }

static void prompt_release(DatasetPrompt *p) {
    for (int i = 0; i < p->turn_count; i++) mem_free(p->turns[i]);
    for (int i = 0; i < p->reference_count; i++) mem_free(p->references[i].text);
    mem_free(p->turns);
    mem_free(p->references);
    mem_free(p->set);
    mem_free(p->id);
    mem_free(p->task);
    *p = (DatasetPrompt){0};
}

// A copy of a text that was built; empties it.
static char *copy(Text *text) {
    char *c = text->failed ? NULL : mem_text(text_get(text), text->length);
    text_clear(text);
    return c;
}

static bool put_turn(DatasetPrompt *p, Text *text, Error *e, const Row *row, const char *field) {
    if (text->length == 0 && !text->failed)
        return row_error(row, field, "is empty: a turn must say something", e);
    p->turns[p->turn_count] = copy(text);
    return p->turns[p->turn_count++] || no_memory(row->file, e);
}

static bool put_turns(DatasetPrompt *p, const json_t *list, const char *key, const Row *row, Text *text,
                      Error *e) {
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n == 0 || n > MOST_TURNS)
        return row_error(row, key, "must be a list of turns, a string each", e);
    if (!(p->turns = mem_alloc(n, sizeof *p->turns))) return no_memory(row->file, e);
    for (size_t i = 0; i < n; i++) {
        const json_t *turn = json_array_get(list, i);
        if (!json_is_string(turn)) return row_error(row, key, "must be a list of turns, a string each", e);
        if (!row_text(row, key, turn, text, e) || !put_turn(p, text, e, row, key)) return false;
    }
    return true;
}

static bool add_turns(DatasetPrompt *p, const Format *f, const Frame *frame, const Row *row, Text *text,
                      Error *e) {
    const json_t *list = f->turns_key ? row_find(row->json, f->turns_key, strlen(f->turns_key)) : NULL;
    if (list) return put_turns(p, list, f->turns_key, row, text, e);
    if (!f->prompt) return row_missing(row, f->turns_key, e);
    if (!(p->turns = mem_alloc(1, sizeof *p->turns))) return no_memory(row->file, e);
    return pattern_expand(frame ? frame->pattern : f->prompt, row, text, e) &&
           put_turn(p, text, e, row, "prompt");
}

// An empty one is none: MT-Bench has them where only the other turn has an answer.
static bool put_reference(DatasetPrompt *p, int turn, Text *text, size_t *capacity, const Row *row,
                          Error *e) {
    void *list = p->references;
    if (text->length == 0 && !text->failed) return true;
    if (!mem_grow(&list, capacity, (size_t)p->reference_count + 1, sizeof *p->references))
        return no_memory(row->file, e);
    p->references = list;
    p->references[p->reference_count] = (Reference){turn, copy(text)};
    return p->references[p->reference_count++].text || no_memory(row->file, e);
}

// Each item is of its turn, and what is left over of the last one: a single turn may have several answers.
static bool put_references(DatasetPrompt *p, const json_t *value, const char *key, const Row *row, Text *text,
                           Error *e) {
    size_t capacity = 0, n = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        size_t answers = json_is_array(item) ? json_array_size(item) : 1;
        int turn = i < (size_t)p->turn_count ? (int)i : p->turn_count - 1;
        for (size_t k = 0; k < answers; k++) {
            const json_t *answer = json_is_array(item) ? json_array_get(item, k) : item;
            if (!json_is_string(answer))
                return row_error(row, key, "must be a string, or a list of strings", e);
            if (!row_text(row, key, answer, text, e) || !put_reference(p, turn, text, &capacity, row, e))
                return false;
        }
    }
    return true;
}

static bool add_references(DatasetPrompt *p, const Format *f, const Row *row, Text *text, Error *e) {
    size_t capacity = 0;
    const json_t *list =
        f->references_key ? row_find(row->json, f->references_key, strlen(f->references_key)) : NULL;
    if (list) return put_references(p, list, f->references_key, row, text, e);
    return !f->reference ||
           (pattern_expand(f->reference, row, text, e) && put_reference(p, 0, text, &capacity, row, e));
}

// What the key says, or `other` where the row does not have it.
static char *field_or(const char *key, const char *other, const Row *row, Text *text, Error *e) {
    const json_t *value = key ? row_find(row->json, key, strlen(key)) : NULL;
    if (!value) text_puts(text, other);
    else if (!row_text(row, key, value, text, e)) return NULL;
    char *c = copy(text);
    if (!c) no_memory(row->file, e);
    return c;
}

static bool add_names(DatasetPrompt *p, const char *set, const Format *f, const Row *row, Text *text,
                      Error *e) {
    text_printf(text, "%zu", row->number);
    char *number = copy(text);
    p->row = row->number;
    p->set = mem_text(set, strlen(set));
    bool ok = (number && p->set) || no_memory(row->file, e);
    ok = ok && (p->id = field_or(f->id, number, row, text, e)) &&
         (p->task = field_or(f->task_key, f->task, row, text, e));
    mem_free(number);
    return ok && (p->id[0] || row_error(row, f->id, "is empty: give each row its own", e));
}

bool prompts_add(Dataset *d, const Format *format, const Frame *frame, const Row *row, Error *e) {
    void *list = d->prompts;
    Text text = {0};
    if (d->count == MOST_PROMPTS)
        return error_input(e, "'%s' has more than %d rows: split it", row->file, MOST_PROMPTS);
    if (!mem_grow(&list, &d->capacity, d->count + 1, sizeof *d->prompts)) return no_memory(row->file, e);
    d->prompts = list;
    DatasetPrompt *p = &d->prompts[d->count++];
    *p = (DatasetPrompt){0};
    bool ok = add_names(p, d->name, format, row, &text, e) && add_turns(p, format, frame, row, &text, e) &&
              add_references(p, format, row, &text, e);
    text_release(&text);
    return ok;
}

void prompts_cut(Dataset *d, size_t from) {
    while (d->count > from) prompt_release(&d->prompts[--d->count]);
}

bool dataset_leave_out(Dataset *d, const bool *leave_out, bool own_file, Error *e) {
    size_t kept = 0;
    for (size_t i = 0; i < d->count; i++)
        if (leave_out[i]) prompt_release(&d->prompts[i]);
        else d->prompts[kept++] = d->prompts[i];
    d->count = kept;
    return prompts_hash(d, own_file, e);
}

void prompts_cut_turns(Dataset *d, int turns) {
    for (size_t i = 0; i < d->count; i++) {
        DatasetPrompt *p = &d->prompts[i];
        int kept = 0;
        while (p->turn_count > turns) mem_free(p->turns[--p->turn_count]);
        for (int k = 0; k < p->reference_count; k++)
            if (p->references[k].turn < turns) p->references[kept++] = p->references[k];
            else mem_free(p->references[k].text);
        p->reference_count = kept;
    }
}

bool prompts_move(Dataset *to, Dataset *from, Error *e) {
    void *list = to->prompts;
    if (!mem_grow(&list, &to->capacity, to->count + from->count, sizeof *to->prompts))
        return error_system(e, "out of memory for %zu prompts", to->count + from->count);
    to->prompts = list;
    if (from->count) memcpy(to->prompts + to->count, from->prompts, from->count * sizeof *to->prompts);
    to->count += from->count;
    from->count = 0;
    return true;
}

static int by_id(const void *a, const void *b) {
    const DatasetPrompt *x = *(const DatasetPrompt *const *)a, *y = *(const DatasetPrompt *const *)b;
    int order = strcmp(x->set, y->set);
    if (order == 0) order = strcmp(x->id, y->id);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

bool prompts_check_ids(const Dataset *d, const char *file, Error *e) {
    const DatasetPrompt **sorted = mem_alloc(d->count, sizeof *sorted);
    bool ok = sorted || no_memory(file, e);
    for (size_t i = 0; ok && i < d->count; i++) sorted[i] = &d->prompts[i];
    if (ok) qsort(sorted, d->count, sizeof *sorted, by_id);
    for (size_t i = 1; ok && i < d->count; i++)
        if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0 && strcmp(sorted[i - 1]->set, sorted[i]->set) == 0)
            ok = error_input(e,
                             "'%s': the rows at %zu and %zu have the same id '%s' in '%s': give each its own",
                             file, sorted[i - 1]->row, sorted[i]->row, sorted[i]->id, sorted[i]->set);
    mem_free(sorted);
    return ok;
}

// With its length before it, so that no two lists of texts are the same bytes.
static void hash_text(Text *out, const char *s) {
    size_t n = strlen(s);
    text_printf(out, "%zu:", n);
    text_add(out, s, n);
}

static bool hash_prompts(const Dataset *d, bool sets, char out[SHA256_TEXT], Error *e) {
    Text all = {0};
    for (size_t i = 0; i < d->count; i++) {
        const DatasetPrompt *p = &d->prompts[i];
        if (sets) hash_text(&all, p->set);
        hash_text(&all, p->id);
        hash_text(&all, p->task);
        text_printf(&all, "%d,%d;", p->turn_count, p->reference_count);
        for (int k = 0; k < p->turn_count; k++) hash_text(&all, p->turns[k]);
        for (int k = 0; k < p->reference_count; k++) {
            text_printf(&all, "%d ", p->references[k].turn);
            hash_text(&all, p->references[k].text);
        }
    }
    bool ok = all.failed ? no_memory(d->name, e) : sha256_bytes(text_get(&all), all.length, out, e);
    text_release(&all);
    return ok;
}

bool prompts_hash(Dataset *d, bool own_file, Error *e) {
    return hash_prompts(d, true, d->named_sha256, e) && hash_prompts(d, !own_file, d->sha256, e);
}

void dataset_release(Dataset *d) {
    prompts_cut(d, 0);
    mem_free(d->prompts);
    mem_free(d->name);
    *d = (Dataset){0};
}
