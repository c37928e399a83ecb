// The table of formats, and their patterns filled in from a row. A row belongs to the first format of the
// table whose keys it has; the last one fits every row, so format_of_row never returns NULL.
#include "datasets/format.h"

#include <stdio.h>
#include <string.h>

enum { FIELD_NAME = 128 };

// The dataset's own README: 1 to 10 are examples for a prompt.
static const FormatSplit MBPP_SPLITS[] = {
    {"prompt", 1, 10}, {"test", 11, 510}, {"validation", 511, 600}, {"train", 601, 974}, {NULL, 0, 0}};

#define HUMANEVAL_OUROBOROS                                                                             \
    "Please complete the following Python code without providing any additional tasks such as testing " \
    "or explanations\n{prompt}"
#define CLASSEVAL_LOOKAHEAD \
    "{import_statement}\n{class_constructor@first} \n{class_description}\n{class_constructor@rest}"
#define SUMMARY_OUROBOROS \
    "Please summarize the following document within one sentence. Document: {article}  Summary: "
#define WMT_OUROBOROS      "Translate this German sentence to English. German: {translation/de} English: "
#define MBPP_TASK          "You are an expert Python programmer, and here is your task: "
#define MBPP_PROMPT(field) MBPP_TASK "{" field "}" MBPP_TESTS
#define MBPP_BEGIN(field)  MBPP_PROMPT(field) "[BEGIN]\n"
#define MBPP_TESTS         " Your code should pass these tests:\n\n{test_list}\n"
#define SUMMARY_LOOKAHEAD(field)                                                                        \
    "You are an intelligent chatbot. Answer the questions only using the following context:\n\n{" field \
    "}\n\nBriefly summarize the given context.\nSummary: "

static const Format MT_BENCH = {
    .name = "mt-bench",
    .about = "MT-Bench, Spec-Bench and SPEED-Bench (by any of these names): conversations",
    .keys = "question_id category turns",
    .id = "question_id",
    .task = "chat",
    .task_key = "category",
    .subtask_key = "sub_category",
    .turns_key = "turns",
    .references_key = "reference"};
static const Format HUMANEVAL = {.name = "humaneval",
                                 .about = "HumanEval: heads of Python functions",
                                 .keys = "task_id prompt canonical_solution",
                                 .id = "task_id",
                                 .task = "code",
                                 .prompt = "{prompt}",
                                 .reference = "{canonical_solution}"};
static const Format MBPP = {.name = "mbpp",
                            .about = "MBPP: a task in a sentence, with tests",
                            .keys = "task_id text code test_list",
                            .id = "task_id",
                            .task = "code",
                            .prompt = MBPP_PROMPT("text"),
                            .asks = true,
                            .reference = "{code}",
                            .splits = MBPP_SPLITS};
static const Format MBPP_SANITIZED = {.name = "mbpp-sanitized",
                                      .about = "MBPP, the part that was checked by hand",
                                      .keys = "task_id prompt code test_list",
                                      .id = "task_id",
                                      .task = "code",
                                      .prompt = MBPP_PROMPT("prompt"),
                                      .asks = true,
                                      .reference = "{code}",
                                      .splits = MBPP_SPLITS};
static const Format GSM8K = {.name = "gsm8k",
                             .about = "GSM8K: word problems",
                             .keys = "question answer",
                             .task = "mathematics",
                             .prompt = "{question}",
                             .asks = true,
                             .reference = "{answer}"};
static const Format CLASSEVAL = {.name = "classeval",
                                 .about = "ClassEval: heads of Python classes",
                                 .keys =
                                     "task_id skeleton class_description class_constructor import_statement",
                                 .id = "task_id",
                                 .task = "code",
                                 .prompt = "{skeleton}",
                                 .reference = "{solution_code}"};
static const Format CNNDM = {.name = "cnndm",
                             .about = "CNN/Daily Mail: articles with highlights",
                             .keys = "article highlights",
                             .id = "id",
                             .task = "summarization",
                             .prompt = "Summarize: {article}",
                             .asks = true,
                             .reference = "{highlights}"};
static const Format CNNDM_LLMA = {
    .name = "cnndm-llma",
    .about = "CNN/Daily Mail: a hundred articles as LLMA asks about them, answers by a model",
    .keys = "query docs",
    .task = "summarization",
    .prompt = "{query}",
    .asks = true,
    .reference = "{result/text@marked}"};
static const Format XSUM = {.name = "xsum",
                            .about = "XSum: articles with a summary of one sentence",
                            .keys = "document summary",
                            .id = "id",
                            .task = "summarization",
                            .prompt = "{document}\n\nSummarize the above article in 1 sentence.\n",
                            .asks = true,
                            .reference = "{summary}"};
static const Format XSUM_HELM = {.name = "xsum-helm",
                                 .about = "XSum: requests of HELM, examples in each",
                                 .keys = "article summary_gt",
                                 .task = "summarization",
                                 .prompt = "{article}",
                                 .reference = "{summary_gt}"};
static const Format WMT = {.name = "wmt",
                           .about = "WMT German to English: pairs of sentences",
                           .keys = "translation/de translation/en",
                           .task = "translation",
                           .prompt = "Translate German to English: {translation/de}",
                           .asks = true,
                           .reference = "{translation/en}"};
static const Format SHAREGPT = {.name = "sharegpt",
                                .about = "ShareGPT: conversations, of which the human's turns are read",
                                .keys = "conversations",
                                .id = "id",
                                .task = "chat",
                                .turns_key = "conversations",
                                .speaker = "from",
                                .said = "value",
                                .lacks = "prompt turns"};
static const Format SPEED_BENCH_CHAT = {.name = "speed-bench-chat",
                                        .about = "SPEED-Bench as AIPerf reads it, as chat messages",
                                        .keys = "question_id category messages",
                                        .id = "question_id",
                                        .task = "chat",
                                        .task_key = "category",
                                        .subtask_key = "sub_category",
                                        .turns_key = "messages",
                                        .speaker = "role",
                                        .said = "content",
                                        .lacks = "prompt turns"};
static const Format MESSAGES = {.name = "messages",
                                .about = "chat messages, of which the user's are read",
                                .keys = "messages",
                                .id = "id",
                                .task = "chat",
                                .turns_key = "messages",
                                .speaker = "role",
                                .said = "content",
                                .lacks = "prompt turns"};
static const Format ALPACA = {.name = "alpaca",
                              .about = "Alpaca: an instruction, perhaps with an input",
                              .keys = "instruction output",
                              .id = "id",
                              .task = "chat",
                              .prompt = "{instruction}{input@below}",
                              .asks = true,
                              .reference = "{output}",
                              .lacks = "prompt turns"};
static const Format TEXT = {.name = "text",
                            .about = "a prompt a line",
                            .keys = "prompt",
                            .task = "",
                            .prompt = "{prompt}",
                            .is_text = true};
static const Format JSONL = {.name = "jsonl",
                             .about = "your own: prompt or turns; id, task, reference",
                             .keys = "",
                             .id = "id",
                             .task = "",
                             .task_key = "task",
                             .turns_key = "turns",
                             .prompt = "{prompt}",
                             .references_key = "reference"};

// The format that fits every row is the last.
static const Format *const FORMATS[] = {
    &MT_BENCH,  &HUMANEVAL, &MBPP,     &MBPP_SANITIZED,   &GSM8K,    &CLASSEVAL, &CNNDM, &CNNDM_LLMA, &XSUM,
    &XSUM_HELM, &WMT,       &SHAREGPT, &SPEED_BENCH_CHAT, &MESSAGES, &ALPACA,    &TEXT,  &JSONL};
enum { FORMATS_COUNT = sizeof FORMATS / sizeof *FORMATS };

// Grouped by format, in the order in which they are listed.
static const Frame FRAMES[] = {
    {"humaneval", "ouroboros", HUMANEVAL_OUROBOROS, "Ouroboros"},
    {"mbpp", "bare", "{text}", "the task alone"},
    {"mbpp", "begin", MBPP_BEGIN("text"), "Austin et al., without examples"},
    {"mbpp-sanitized", "bare", "{prompt}", "the task alone"},
    {"mbpp-sanitized", "begin", MBPP_BEGIN("prompt"), "Austin et al., without examples"},
    {"gsm8k", "qa", "Question: {question}\nAnswer:", "as the reference family learns it"},
    {"gsm8k", "ouroboros", "Q: {question}\nA:", "Ouroboros, without its eight examples"},
    {"classeval", "lookahead", CLASSEVAL_LOOKAHEAD, "LookaheadDecoding"},
    {"cnndm", "ouroboros", SUMMARY_OUROBOROS, "Ouroboros"},
    {"cnndm", "lookahead", SUMMARY_LOOKAHEAD("article"), "LookaheadDecoding, without its list of rules"},
    {"cnndm-llma", "bare", "Summarize: {docs}", "the article alone, as in Spec-Bench"},
    {"xsum", "lookahead", SUMMARY_LOOKAHEAD("document"), "LookaheadDecoding, without its list of rules"},
    {"wmt", "ouroboros", WMT_OUROBOROS, "Ouroboros"},
};
enum { FRAMES_COUNT = sizeof FRAMES / sizeof *FRAMES };

const Format *const *format_table(size_t *count) {
    *count = FORMATS_COUNT;
    return FORMATS;
}

const Frame *format_frames(const Format *format, size_t i) {
    for (size_t k = 0; k < FRAMES_COUNT; k++)
        if (strcmp(FRAMES[k].format, format->name) == 0 && i-- == 0) return &FRAMES[k];
    return NULL;
}

const Frame *format_frame(const Format *format, const char *name, Error *e) {
    const Frame *first = format_frames(format, 0), *f;
    for (size_t i = 0; (f = format_frames(format, i)); i++)
        if (strcmp(f->name, name) == 0) return f;
    if (first)
        error_input(e, "the format %s has no frame '%s'; it has '%s'", format->name, name, first->name);
    else error_input(e, "the format %s has one frame only: leave ':%s' away", format->name, name);
    return NULL;
}

const Format *format_find(const char *name, const Frame **frame, Error *e) {
    static const char *const ALIKE[] = {"spec-bench", "speed-bench"}; // their rows are MT-Bench's, with more
    for (size_t i = 0; i < sizeof ALIKE / sizeof *ALIKE; i++)
        if (strcmp(name, ALIKE[i]) == 0) name = MT_BENCH.name;
    size_t n = strcspn(name, ":");
    *frame = NULL;
    for (size_t i = 0; i < FORMATS_COUNT; i++)
        if (strlen(FORMATS[i]->name) == n && memcmp(FORMATS[i]->name, name, n) == 0) {
            if (name[n] && !(*frame = format_frame(FORMATS[i], name + n + 1, e))) return NULL;
            return FORMATS[i];
        }
    const char *nearest = suggest(name, FORMATS, FORMATS_COUNT, 0);
    if (nearest) error_input(e, "there is no format '%s'; did you mean '%s'?", name, nearest);
    else error_input(e, "there is no format '%s'; 'outpace datasets --formats' lists them", name);
    return NULL;
}

// How many of the keys the row has; *all: how many there are.
static size_t count_keys(const json_t *row, const char *keys, size_t *all) {
    size_t found = 0;
    *all = 0;
    for (const char *k = keys ? keys : ""; *k; ++*all) {
        size_t n = strcspn(k, " ");
        found += row_find(row, k, n) != NULL;
        k += n + (k[n] == ' ');
    }
    return found;
}

const Format *format_of_row(const json_t *row) {
    for (size_t i = 0, all; i < FORMATS_COUNT; i++) {
        const Format *f = FORMATS[i];
        if (!f->is_text && count_keys(row, f->lacks, &all) == 0 && count_keys(row, f->keys, &all) == all)
            return f;
    }
    return FORMATS[FORMATS_COUNT - 1];
}

// --- rows and patterns -----------------------------------------------------------------------------------

bool row_error(const Row *row, const char *field, const char *what, Error *e) {
    error_input(e, "'%s', %s %zu: field '%s' %s", row->file, row->unit, row->number, field, what);
    return false;
}

bool row_missing(const Row *row, const char *field, Error *e) {
    char what[256];
    snprintf(what, sizeof what, "is missing; a row of the format %s has %s", row->format, row->keys);
    return row_error(row, field, what, e);
}

const json_t *row_find(const json_t *row, const char *path, size_t n) {
    for (size_t at = 0; row && at < n;) {
        const char *slash = memchr(path + at, '/', n - at);
        size_t length = slash ? (size_t)(slash - path) - at : n - at;
        char name[256];
        if (length >= sizeof name) return NULL; // longer than any key of ours
        memcpy(name, path + at, length);
        name[length] = 0;
        row = json_object_get(row, name);
        at += length + 1;
    }
    return json_is_null(row) ? NULL : row;
}

bool row_text(const Row *row, const char *name, const json_t *value, Text *out, Error *e) {
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    if (json_is_integer(value)) return text_printf(out, "%lld", (long long)json_integer_value(value)), true;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_string(item)) return row_error(row, name, "must be a string, or a list of strings", e);
        if (i) text_puts(out, "\n");
        text_add(out, json_string_value(item), json_string_length(item));
    }
    return true;
}

// Narrows the n bytes at s to the part that is named.
static void take_part(const char *part, const char **s, size_t *n) {
    const char *line = memchr(*s, '\n', *n);
    size_t first = line ? (size_t)(line - *s) : *n;
    size_t from = 0;
    if (strcmp(part, "first") == 0) *n = first;
    if (strcmp(part, "rest") == 0) from = line ? first + 1 : *n;
    if (strcmp(part, "marked") == 0)
        for (size_t i = 0; i + 4 <= *n; i++)
            if (memcmp(*s + i, "####", 4) == 0) from = i + 4;
    *s += from;
    *n -= from;
}

// name: "field" or "field@part".
static bool expand_field(const char *name, size_t n, const Row *row, Text *out, Error *e) {
    char key[FIELD_NAME] = "";
    const char *at = memchr(name, '@', n), *part = "";
    size_t key_length = at ? (size_t)(at - name) : n;
    if (n >= sizeof key) return error_input(e, "a pattern's field has more than %d bytes", FIELD_NAME - 1);
    memcpy(key, name, n);
    if (at) part = key + key_length + 1;
    key[key_length] = 0;
    LOCAL_TEXT whole = {0};
    const json_t *value = row_find(row->json, key, key_length);
    bool below = strcmp(part, "below") == 0;
    if (below && !value) return true;
    bool ok = !value ? row_missing(row, key, e)
              : json_is_integer(value)
                  ? row_error(row, key, "is a number, must be a string: put it in quotes", e)
                  : row_text(row, key, value, &whole, e);
    const char *s = text_get(&whole);
    size_t length = whole.length;
    take_part(part, &s, &length);
    if (ok && below && length) text_puts(out, "\n\n");
    if (ok) text_add(out, s, length);
    return ok;
}

bool pattern_expand(const char *pattern, const Row *row, Text *out, Error *e) {
    for (const char *p = pattern; *p;) {
        size_t plain = strcspn(p, "{");
        text_add(out, p, plain);
        p += plain;
        if (!*p) break;
        size_t n = strcspn(++p, "}");
        if (!expand_field(p, n, row, out, e)) return false;
        p += n + (p[n] == '}');
    }
    return true;
}
