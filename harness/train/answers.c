// The target's own answers to the prompts of datasets, greedy: text of the kind that adapters and heads read
// in use, for them to learn from. They are made once and kept in a file, a line each after the first:
//
//      {"outpace_answers": "SHA-256 of the target", "max_tokens": 128}
//      {"prompt": 31, "ids": [1, 9038, ...]}       so many ids of the prompt, then the answer, with its EOS
//
// An answer is found by its prompt's ids, so a file serves any choice of prompts and templates, and a stopped
// run continues. It's written whole every few seconds.
//
// Invariant: the list is sorted by prompts, no two of which are the same.
#include "harness/train/train.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "harness/cli/terminal.h"
#include "harness/inputs/models.h"
#include "harness/inputs/prompts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Answers that are made at a time. A step of so many rows costs a small part of so many steps, and every row
// counts, which guesses don't: SmolLM2 135M, 48 prompts of GSM8K on two busy cores of Zen 4, tokens/s: 25
// alone, 28 with suffix; 66, 69 and 66 in a batch of 8, 16 and 32; 60 of 8 with suffix.
enum { BATCH = 16 };

static const size_t MOST_BYTES = (size_t)4 << 30;
static const double SECONDS_BETWEEN_SAVES = 10;
static const OutputKind KIND = {.start = "{\"outpace_answers\""};

typedef struct Answer {
    IdList ids; // of the prompt, then of its answer
    int prompt; // ids of the prompt
} Answer;

typedef struct Answers {
    TrainRun *run;
    const AnswerOptions *o;
    const char *file;
    Text head; // the file's first line
    PromptList prompts;
    Answer *list; // (count)
    size_t count, capacity;
    size_t *missing; // (missing_count) indices: without an answer yet
    size_t missing_count, made, tokens;
    Models models;
    Method methods[BATCH]; // (method_count)
    int method_count;
    double began, saved; // seconds
} Answers;

static bool answered(const Answer *a) { return a->ids.count > (size_t)a->prompt; }

// By the prompt.
static int in_order(const void *a, const void *b) {
    const Answer *x = a, *y = b;
    if (x->prompt != y->prompt) return x->prompt < y->prompt ? -1 : 1;
    return memcmp(x->ids.ids, y->ids.ids, (size_t)x->prompt * sizeof *x->ids.ids);
}

// Among the first `count`, which are sorted.
static Answer *find(const Answers *a, size_t count, const IdList *prompt) {
    Answer key = {*prompt, (int)prompt->count};
    return count ? bsearch(&key, a->list, count, sizeof *a->list, in_order) : NULL;
}

static Answer *add(Answers *a, int prompt) {
    Answer *x = LIST_ADD(a->list, a->count, a->capacity);
    *x = (Answer){.prompt = prompt};
    return x;
}

// Sorts, and of equal prompts keeps one.
static void sort(Answers *a) {
    size_t kept = 0;
    if (a->count) qsort(a->list, a->count, sizeof *a->list, in_order);
    for (size_t i = 0; i < a->count; i++)
        if (kept && in_order(&a->list[kept - 1], &a->list[i]) == 0) ids_release(&a->list[i].ids);
        else a->list[kept++] = a->list[i];
    a->count = kept;
}

// --- the file --------------------------------------------------------------------------------------------

static bool read_line(Answers *a, const char *line, size_t n, Error *e) {
    const char *place = a->file;
    int64_t prompt, id;
    size_t i;
    json_t *row = json_from_bytes(line, n, place, e), *list = json_object_get(row, "ids"), *value;
    int most = (int)json_array_size(list);
    bool ok = row && field_int(row, "prompt", 1, most, &prompt, place, e);
    Answer *to = ok ? add(a, (int)prompt) : NULL;
    json_array_foreach(list, i, value) {
        if (!ok) break;
        id = json_is_integer(value) ? json_integer_value(value) : -1;
        ok = (id >= 0 && id < tokenizer_size(a->run->tokenizer)) ||
             error_input(e, "'%s': 'ids' must be a list of the model's token ids", place);
        if (ok) ids_add(&to->ids, (int)id);
    }
    json_decref(row);
    return ok;
}

static bool read_answers(Answers *a, Error *e) {
    LOCAL_MEMORY char *bytes = NULL;
    size_t size, head = a->head.length;
    bool ok = true;
    if (!file_exists(a->file)) return true;
    if (!file_read(a->file, MOST_BYTES, &bytes, &size, e)) return false;
    if (size < head || memcmp(bytes, text_get(&a->head), head)) {
        ok = a->run->out.force ||
             error_input(e,
                         "'%s' has answers of another model or another --max-tokens: name another file with "
                         "--answers, or --force to write it anew",
                         a->file);
        size = 0;
    }
    for (size_t at = head, n; ok && at < size; at += n + 1) {
        const char *end = memchr(bytes + at, '\n', size - at);
        n = end ? (size_t)(end - bytes) - at : size - at;
        ok = read_line(a, bytes + at, n, e);
    }
    sort(a);
    return ok;
}

static bool write_answers(Answers *a, Error *e) {
    LOCAL_TEXT text = {0};
    LOCAL(output_release) Output out = output_more(&a->run->out);
    text_add(&text, text_get(&a->head), a->head.length);
    for (size_t i = 0; i < a->count; i++) {
        const Answer *x = &a->list[i];
        if (!answered(x)) continue;
        text_printf(&text, "{\"prompt\": %d, \"ids\": [", x->prompt);
        for (size_t k = 0; k < x->ids.count; k++) text_printf(&text, k ? ",%d" : "%d", x->ids.ids[k]);
        text_puts(&text, "]}\n");
    }
    bool ok = output_add(&out, a->file, &KIND, text_get(&text), text.length, e) && output_finish(&out, e);
    a->saved = clock_now(clock_monotonic());
    return ok;
}

// --- prompts ---------------------------------------------------------------------------------------------

// Prompts that leave no room for an answer in a document are left out.
static bool read_prompts(Answers *a, Error *e) {
    const AnswerOptions *o = a->o;
    const Template *named = o->template ? tokenizer_template(a->run->tokenizer, o->template, e) : NULL;
    const char *folder = getenv("OUTPACE_DATA");
    if (o->template && !named) return false;
    for (int i = 0; i < o->datasets.count; i++) {
        const char *name = o->datasets.items[i];
        bool whole =
            strchr(name, '/') || !strcmp(o->split, "all"); // a file of one's own has no split to keep out
        DatasetRequest request = {.name = name,
                                  .folder = folder && *folder ? folder : NULL,
                                  .split = whole ? NULL : o->split,
                                  .limit = (size_t)o->prompts};
        const Template *used = named;
        LOCAL(dataset_release) Dataset d = {0};
        bool ok =
            dataset_open(&d, &request, e) && prompts_of_dataset(&d, a->run->tokenizer, &used, &a->prompts, e);
        if (!ok) return !whole && error_within(e, "--split %s ('all' takes a set without splits)", o->split);
    }
    size_t kept = 0, all = a->prompts.count;
    for (size_t i = 0; i < all; i++)
        if (a->prompts.prompts[i].count < (size_t)a->run->file.config.shape.context)
            a->prompts.prompts[kept++] = a->prompts.prompts[i];
        else ids_release(&a->prompts.prompts[i]);
    a->prompts.count = kept;
    if (kept < all) fprintf(stderr, "left out  %zu prompts that fill a document\n", all - kept);
    return kept > 0 || error_input(e, "the datasets have no prompt that leaves room for an answer");
}

// Adds the prompts that have no answer to the list, and lists them.
static void list_missing(Answers *a) {
    size_t known = a->count;
    for (size_t i = 0; i < a->prompts.count; i++) {
        const IdList *p = &a->prompts.prompts[i];
        if (find(a, known, p)) continue;
        Answer *x = add(a, (int)p->count);
        for (size_t k = 0; k < p->count; k++) ids_add(&x->ids, p->ids[k]);
    }
    sort(a);
    a->missing = mem_new(a->count, sizeof *a->missing);
    for (size_t i = 0; i < a->count; i++)
        if (!answered(&a->list[i])) a->missing[a->missing_count++] = i;
}

// --- answers ---------------------------------------------------------------------------------------------

static bool make_one(void *state, int sequence, int i, Clock clock, Error *e) {
    Answers *a = state;
    const Model *m = &a->models.target.model;
    Answer *x = &a->list[a->missing[i]];
    LOCAL(decode_result_release) DecodeResult r = {0};
    DecodeOptions d = {.max_tokens = a->o->tokens,
                       .eos = m->eos,
                       .eos_count = m->eos_count,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .clock = clock};
    double past = clock_now(clock_monotonic()) - a->began;
    snprintf(a->run->line.at, sizeof a->run->line.at, "answer %zu of %zu, %.0f tokens/s", a->made + 1,
             a->missing_count, past > 0 ? (double)a->tokens / past : 0);
    if (!decode(engine_session(&a->models.target, sequence), &a->methods[sequence], x->ids.ids, x->prompt, &d,
                &r, e))
        return false;
    for (int k = 0; k < r.tokens; k++) ids_add(&x->ids, r.ids[k]);
    a->made++;
    a->tokens += (size_t)r.tokens;
    return clock_now(clock_monotonic()) - a->saved < SECONDS_BETWEEN_SAVES || write_answers(a, e);
}

// Answers that were made before a failure, or an interrupt, are kept.
static bool make_missing(Answers *a, Error *e) {
    TrainRun *r = a->run;
    const TrainConfig *c = &r->file.config;
    ModelChoice choice = {.target = a->o->model,
                          .engine = {.threads = c->threads,
                                     .context = c->shape.context,
                                     .batch = a->missing_count < BATCH ? (int)a->missing_count : BATCH,
                                     .progress = c->progress,
                                     .beside = a->o->beside}};
    Sampling greedy = {.top_p = 1};
    bool ok = models_open(&a->models, &choice, e);
    for (; ok && a->method_count < models_batch(&a->models); a->method_count += ok) {
        MethodEnv env = models_env_of(&a->models, a->method_count, &greedy, 0, false);
        ok = method_open(&a->methods[a->method_count], "autoregressive", &env, e);
    }
    a->began = a->saved = clock_now(clock_monotonic());
    Outputs outputs = {(int)a->missing_count, make_one, a, clock_monotonic()};
    ok = ok && models_run(&a->models, &outputs, e);
    double seconds = clock_now(clock_monotonic()) - a->began;
    if (a->made && !write_answers(a, ok ? e : NULL)) ok = false;
    r->line.at[0] = 0;
    line_clear(&r->line);
    if (a->made)
        fprintf(stderr, "answers   %zu made in %.1f s, %.0f tokens/s, kept in %s\n", a->made, seconds,
                (double)a->tokens / seconds, SHOWN(a->file));
    while (a->method_count) method_close(&a->methods[--a->method_count]);
    models_close(&a->models);
    return ok;
}

bool train_run_answers(TrainRun *r, Error *e) {
    LOCAL_MEMORY char *own = r->answers->file ? NULL : train_run_beside(r, "answers.jsonl");
    Answers a = {.run = r, .o = r->answers, .file = own ? own : r->answers->file};
    text_printf(&a.head, "{\"outpace_answers\": \"%.*s\", \"max_tokens\": %d}\n", SHA256_TEXT - 1,
                r->file.config.adapter->name, a.o->tokens);
    bool ok = output_check(&r->out, a.file, &KIND, e) && read_prompts(&a, e) && read_answers(&a, e);
    if (ok) list_missing(&a);
    if (ok && a.missing_count) ok = make_missing(&a, e);
    else if (ok) fprintf(stderr, "answers   all %zu are in %s\n", a.prompts.count, SHOWN(a.file));
    for (size_t i = 0; ok && i < a.prompts.count; i++) {
        const Answer *x = find(&a, a.count, &a.prompts.prompts[i]);
        assert(x && answered(x));
        train_run_add(r, &x->ids, 0);
    }
    for (size_t i = 0; i < a.count; i++) ids_release(&a.list[i].ids);
    MEM_FREE(a.list, a.missing);
    text_release(&a.head);
    prompts_release(&a.prompts);
    return ok;
}
