// The list of prompts of a dataset: made from rows, checked, cut, ordered, hashed. A shuffle is Fisher-Yates
// with a counter-based generator, so the order is the same on every machine. Groups (tasks or sets) take
// turns, each in its own order:
//
//     BY_TASK, consecutive 2, groups a and b:   a0 a1 b0 b1 a2 a3 b2 b3 a4 b4 b5 ...
#include "datasets/format.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// What SPEED-Bench's public rows hold in place of texts that may not be handed on.
#define PLACEHOLDER "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"
#define PLACEHOLDER_FIX                                                                           \
    "holds SPEED-Bench's placeholder, not a prompt: make the whole file with prepare_data.py of " \
    "examples/specdec_bench in NVIDIA's Model-Optimizer, and give that one"

enum { MOST_PROMPTS = 1 << 24, MOST_TURNS = 1 << 10, MOST_GROUPS = 4096 };

bool dataset_asks(const Dataset *d) {
    for (size_t i = 0; i < d->count; i++)
        if (!d->prompts[i].asks) return false;
    return true;
}

void prompts_forget(DatasetPrompt *p) {
    for (int i = 0; i < p->reference_count; i++) mem_free(p->references[i].text);
    MEM_FREE(p->turns, p->references);
    p->turns = NULL;
    p->references = NULL;
    p->turn_count = p->reference_count = 0;
}

static void prompt_release(DatasetPrompt *p) {
    prompts_forget(p);
    mem_free(p->set);
    *p = (DatasetPrompt){0};
}

// Returns a copy of the text and empties it.
static char *take(Text *text) {
    char *c = mem_text(text_get(text), text->length);
    text_clear(text);
    return c;
}

// Every prompt in the list satisfies this.
static void prompts_check(const Dataset *d) {
    assert(d->count <= d->capacity);
    for (size_t i = 0; i < d->count; i++) {
        const DatasetPrompt *p = &d->prompts[i];
        assert(p->set && p->id[0] && p->task && p->turn_count > 0 && p->reference_count >= 0);
        for (int k = 0; k < p->reference_count; k++) assert(p->references[k].turn < p->turn_count);
    }
}

static bool put_turn(DatasetPrompt *p, Text *text, Error *e, const Row *row, const char *field) {
    if (text->length == 0) return row_error(row, field, "is empty: a turn must have text", e);
    if (strstr(text_get(text), PLACEHOLDER)) return row_error(row, field, PLACEHOLDER_FIX, e);
    p->turns[p->turn_count++] = take(text);
    return true;
}

static bool put_turns(DatasetPrompt *p, const json_t *list, const char *key, const Row *row, Text *text,
                      Error *e) {
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n == 0 || n > MOST_TURNS)
        return row_error(row, key, "must be a list of turns, a string each", e);
    p->turns = mem_new(n, sizeof *p->turns);
    for (size_t i = 0; i < n; i++) {
        const json_t *turn = json_array_get(list, i);
        if (!json_is_string(turn)) return row_error(row, key, "must be a list of turns, a string each", e);
        if (!row_text(row, key, turn, text, e) || !put_turn(p, text, e, row, key)) return false;
    }
    return true;
}

// The user's turns of a conversation; empty ones are left out.
static bool put_said(DatasetPrompt *p, const json_t *list, const Format *f, const Row *row, Text *text,
                     Error *e) {
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > MOST_TURNS)
        return row_error(row, f->turns_key, "must be a list of at most 1024 turns", e);
    p->turns = mem_new(n, sizeof *p->turns);
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i), *said = json_object_get(item, f->said);
        const char *speaker = json_string_value(json_object_get(item, f->speaker));
        if (!speaker || (said && !json_is_string(said) && !json_is_null(said)))
            return row_error(row, f->turns_key, "must be a list of turns, each with its speaker and a text",
                             e);
        if (strcmp(speaker, "human") != 0 && strcmp(speaker, "user") != 0) continue;
        if (json_string_length(said) &&
            !(row_text(row, f->turns_key, said, text, e) && put_turn(p, text, e, row, f->turns_key)))
            return false;
    }
    return true;
}

static bool add_turns(DatasetPrompt *p, const Format *f, const Frame *frame, const Row *row, Text *text,
                      Error *e) {
    const json_t *list = f->turns_key ? row_find(row->json, f->turns_key, strlen(f->turns_key)) : NULL;
    p->asks = list || (f->asks && !frame); // a frame is a paper's own words
    if (list && f->said) return put_said(p, list, f, row, text, e);
    if (list) return put_turns(p, list, f->turns_key, row, text, e);
    if (!f->prompt) return row_missing(row, f->turns_key, e);
    p->turns = mem_new(1, sizeof *p->turns);
    return pattern_expand(frame ? frame->pattern : f->prompt, row, text, e) &&
           put_turn(p, text, e, row, "prompt");
}

// Empty references are skipped: MT-Bench has them where only the other turn has an answer.
static void put_reference(DatasetPrompt *p, int turn, Text *text, size_t *capacity) {
    if (text->length == 0) return;
    *LIST_ADD(p->references, p->reference_count, *capacity) = (Reference){turn, take(text)};
}

// Item i belongs to turn i, items beyond the last turn to the last turn: a single turn may have several
// answers.
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
            if (!row_text(row, key, answer, text, e)) return false;
            put_reference(p, turn, text, &capacity);
        }
    }
    return true;
}

static bool add_references(DatasetPrompt *p, const Format *f, const Row *row, Text *text, Error *e) {
    size_t capacity = 0;
    const json_t *list =
        f->references_key ? row_find(row->json, f->references_key, strlen(f->references_key)) : NULL;
    if (list) return put_references(p, list, f->references_key, row, text, e);
    if (!f->reference) return true;
    if (!pattern_expand(f->reference, row, text, e)) return false;
    put_reference(p, 0, text, &capacity);
    return true;
}

// The row's value of the key, or `other` if it has none.
static char *field_or(const char *key, const char *other, const Row *row, Text *text, Error *e) {
    const json_t *value = key ? row_find(row->json, key, strlen(key)) : NULL;
    if (!value) text_puts(text, other);
    else if (!row_text(row, key, value, text, e)) return NULL;
    return take(text);
}

// "coding", or with a subtask "coding/python".
static char *task_of(const Format *f, const Row *row, Text *text, Error *e) {
    LOCAL_MEMORY char *task = field_or(f->task_key, f->task, row, text, e);
    LOCAL_MEMORY char *sub = task ? field_or(f->subtask_key, "", row, text, e) : NULL;
    if (!sub) return NULL;
    return *sub && *task ? mem_printf("%s/%s", task, sub) : mem_text(task, strlen(task));
}

static bool add_names(DatasetPrompt *p, const char *set, const Format *f, const Row *row, Text *text,
                      Error *e) {
    text_printf(text, "%zu", row->number);
    LOCAL_MEMORY char *number = take(text);
    p->row = row->number;
    LOCAL_MEMORY char *id = field_or(f->id, number, row, text, e),
                      *task = id ? task_of(f, row, text, e) : NULL;
    bool ok = task && (*id || row_error(row, f->id, "is empty: give each row its own", e));
    if (ok) { // the three in one block, which is the set's
        size_t a = strlen(set) + 1, b = strlen(id) + 1, c = strlen(task) + 1;
        p->set = mem_new(a + b + c, 1);
        p->id = memcpy(p->set + a, id, b);
        p->task = memcpy(p->set + a + b, task, c);
        memcpy(p->set, set, a);
    }
    return ok;
}

// The turns in one block, in place of one for each: small blocks are most of a large dataset's memory.
static void pack_turns(DatasetPrompt *p) {
    size_t count = (size_t)p->turn_count, bytes = count * sizeof *p->turns;
    for (size_t i = 0; i < count; i++) bytes += strlen(p->turns[i]) + 1;
    char **packed = mem_new(bytes, 1), *at = (char *)(packed + count);
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(p->turns[i]) + 1;
        packed[i] = memcpy(at, p->turns[i], n);
        at += n;
        mem_free(p->turns[i]);
    }
    mem_free(p->turns);
    p->turns = packed;
}

bool prompts_add(Dataset *d, const Format *format, const Frame *frame, const Row *row, Error *e) {
    LOCAL_TEXT text = {0};
    if (d->count == MOST_PROMPTS)
        return error_input(e, "'%s' has more than %d rows: split it", row->file, MOST_PROMPTS);
    DatasetPrompt *p = LIST_ADD(d->prompts, d->count, d->capacity);
    *p = (DatasetPrompt){0};
    bool ok = add_names(p, d->name, format, row, &text, e) && add_turns(p, format, frame, row, &text, e) &&
              add_references(p, format, row, &text, e);
    pack_turns(p);
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
        if (p->turn_count > turns) p->turn_count = turns;
        for (int k = 0; k < p->reference_count; k++)
            if (p->references[k].turn < turns) p->references[kept++] = p->references[k];
            else mem_free(p->references[k].text);
        p->reference_count = kept;
    }
    prompts_check(d);
}

void prompts_move(Dataset *to, Dataset *from) {
    mem_grow(&to->prompts, &to->capacity, to->count + from->count, sizeof *to->prompts);
    if (from->count) memcpy(to->prompts + to->count, from->prompts, from->count * sizeof *to->prompts);
    to->count += from->count;
    from->count = 0;
    prompts_check(to);
}

// --- order -----------------------------------------------------------------------------------------------

static void shuffle(Dataset *d, uint64_t seed) {
    Random r = {.seed = seed, .stream = STREAM_ORDER};
    for (size_t i = d->count; i > 1; i--) {
        size_t k = random_below(&r, (uint32_t)i);
        DatasetPrompt swap = d->prompts[i - 1];
        d->prompts[i - 1] = d->prompts[k];
        d->prompts[k] = swap;
    }
}

typedef struct Groups {
    const char *names[MOST_GROUPS];
    size_t next[MOST_GROUPS],
        end[MOST_GROUPS]; // a group's prompts not yet taken: rows[next] .. rows[end - 1]
    size_t count;
    size_t *of;   // (prompts) the group of each prompt
    size_t *rows; // (prompts) numbers of prompts, group after group
} Groups;

static bool find_groups(Groups *g, const Dataset *d, bool by_set, Error *e) {
    for (size_t i = 0; i < d->count; i++) {
        const char *name = by_set ? d->prompts[i].set : d->prompts[i].task;
        size_t k = 0;
        while (k < g->count && strcmp(g->names[k], name) != 0) k++;
        if (k == MOST_GROUPS)
            return error_input(e, "'%s' has more than %d tasks: they cannot take turns", d->name,
                               MOST_GROUPS);
        if (k == g->count) g->names[g->count++] = name;
        g->of[i] = k;
        g->end[k]++;
    }
    if (g->count == 1)
        return error_input(e, "all prompts of '%s' are of one %s: nothing can take turns by task", d->name,
                           by_set ? "part" : "task");
    for (size_t k = 1; k < g->count; k++) g->end[k] += g->end[k - 1];
    for (size_t k = 1; k < g->count; k++) g->next[k] = g->end[k - 1];
    size_t fill[MOST_GROUPS];
    memcpy(fill, g->next, sizeof fill);
    for (size_t i = 0; i < d->count; i++) g->rows[fill[g->of[i]]++] = i;
    return true;
}

static bool by_task(Dataset *d, size_t consecutive, bool by_set, Error *e) {
    LOCAL_MEMORY Groups *g = mem_new(1, sizeof *g);
    g->of = mem_new(d->count, sizeof *g->of);
    g->rows = mem_new(d->count, sizeof *g->rows);
    bool ok = find_groups(g, d, by_set, e);
    if (ok) {
        LOCAL_MEMORY DatasetPrompt *out = mem_new(d->count, sizeof *out);
        for (size_t n = 0; n < d->count;)
            for (size_t k = 0; k < g->count; k++)
                for (size_t c = 0; g->next[k] < g->end[k] && (c < consecutive || consecutive == 0); c++)
                    out[n++] = d->prompts[g->rows[g->next[k]++]];
        for (size_t k = 0; k < g->count; k++) assert(g->next[k] == g->end[k]);
        memcpy(d->prompts, out, d->count * sizeof *out);
    }
    MEM_FREE(g->of, g->rows);
    return ok;
}

bool prompts_order(Dataset *d, const DatasetRequest *request, bool by_set, Error *e) {
    if (request->order == ORDER_SHUFFLED || request->order == ORDER_FIRST_SHUFFLED) shuffle(d, request->seed);
    bool ok = request->order != ORDER_BY_TASK || d->count == 0 ||
              by_task(d, (size_t)request->consecutive, by_set, e);
    prompts_check(d);
    return ok;
}

// --- ids and hashes --------------------------------------------------------------------------------------

static int by_id(const void *a, const void *b) {
    const DatasetPrompt *x = *(const DatasetPrompt *const *)a, *y = *(const DatasetPrompt *const *)b;
    int order = strcmp(x->set, y->set);
    if (order == 0) order = strcmp(x->id, y->id);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

bool prompts_check_ids(const Dataset *d, const char *file, Error *e) {
    LOCAL_MEMORY const DatasetPrompt **sorted = mem_new(d->count, sizeof *sorted);
    for (size_t i = 0; i < d->count; i++) sorted[i] = &d->prompts[i];
    qsort(sorted, d->count, sizeof *sorted, by_id);
    for (size_t i = 1; i < d->count; i++)
        if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0 && strcmp(sorted[i - 1]->set, sorted[i]->set) == 0)
            return error_input(
                e, "'%s': the rows at %zu and %zu have the same id '%s' in '%s': give each its own", file,
                sorted[i - 1]->row, sorted[i]->row, sorted[i]->id, sorted[i]->set);
    return true;
}

// Appends the length, then the text: no two lists of texts give the same bytes.
static void hash_text(Text *out, const char *s) {
    size_t n = strlen(s);
    text_printf(out, "%zu:", n);
    text_add(out, s, n);
}

static bool hash_prompts(const Dataset *d, bool sets, char out[SHA256_TEXT], Error *e) {
    LOCAL_TEXT all = {0};
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
    return sha256_bytes(text_get(&all), all.length, out, e);
}

bool prompts_hash(Dataset *d, bool own_file, Error *e) {
    prompts_check(d);
    return hash_prompts(d, true, d->named_sha256, e) && hash_prompts(d, !own_file, d->sha256, e);
}

void dataset_release(Dataset *d) {
    prompts_cut(d, 0);
    MEM_FREE(d->prompts, d->name);
    *d = (Dataset){0};
}
