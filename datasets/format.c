#include "datasets/format.h"

#include "datasets/pattern.h"
#include "engine/base/error.h"

#include <string.h>

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

static const Format MT_BENCH = {.name = "mt-bench",
                                .about = "MT-Bench and Spec-Bench (by either name): conversations",
                                .keys = "question_id category turns",
                                .id = "question_id",
                                .task = "chat",
                                .task_key = "category",
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
                            .reference = "{code}",
                            .splits = MBPP_SPLITS};
static const Format MBPP_SANITIZED = {.name = "mbpp-sanitized",
                                      .about = "MBPP, the part that was checked by hand",
                                      .keys = "task_id prompt code test_list",
                                      .id = "task_id",
                                      .task = "code",
                                      .prompt = MBPP_PROMPT("prompt"),
                                      .reference = "{code}",
                                      .splits = MBPP_SPLITS};
static const Format GSM8K = {.name = "gsm8k",
                             .about = "GSM8K: word problems",
                             .keys = "question answer",
                             .task = "mathematics",
                             .prompt = "{question}",
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
                             .reference = "{highlights}"};
static const Format CNNDM_LLMA = {
    .name = "cnndm-llma",
    .about = "CNN/Daily Mail: a hundred articles as LLMA asks about them, answers by a model",
    .keys = "query docs",
    .task = "summarization",
    .prompt = "{query}",
    .reference = "{result/text@marked}"};
static const Format XSUM = {.name = "xsum",
                            .about = "XSum: articles with a summary of one sentence",
                            .keys = "document summary",
                            .id = "id",
                            .task = "summarization",
                            .prompt = "{document}\n\nSummarize the above article in 1 sentence.\n",
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
                           .reference = "{translation/en}"};
static const Format TEXT = {.name = "text",
                            .about = "a prompt a line",
                            .keys = "prompt",
                            .task = "",
                            .prompt = "{prompt}",
                            .is_text = true};
static const Format JSONL = {.name = "jsonl",
                             .about = "of one's own: prompt or turns; id, task, reference",
                             .keys = "",
                             .id = "id",
                             .task = "",
                             .task_key = "task",
                             .turns_key = "turns",
                             .prompt = "{prompt}",
                             .references_key = "reference"};

// What fits all stands last.
static const Format *const FORMATS[] = {&MT_BENCH,  &HUMANEVAL, &MBPP,       &MBPP_SANITIZED, &GSM8K,
                                        &CLASSEVAL, &CNNDM,     &CNNDM_LLMA, &XSUM,           &XSUM_HELM,
                                        &WMT,       &TEXT,      &JSONL};
enum { FORMATS_COUNT = sizeof FORMATS / sizeof *FORMATS };

// In their order under each format.
static const Frame FRAMES[] = {
    {"humaneval", "ouroboros", HUMANEVAL_OUROBOROS, "Ouroboros"},
    {"mbpp", "bare", "{text}", "the task alone"},
    {"mbpp", "begin", MBPP_BEGIN("text"), "Austin et al., without examples"},
    {"mbpp-sanitized", "bare", "{prompt}", "the task alone"},
    {"mbpp-sanitized", "begin", MBPP_BEGIN("prompt"), "Austin et al., without examples"},
    {"gsm8k", "qa", "Question: {question}\nAnswer:", "what the reference family learns"},
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

static const char *format_name(const void *table, size_t i) {
    return ((const Format *const *)table)[i]->name;
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
    static const char SPEC_BENCH[] = "spec-bench"; // its rows are MT-Bench's
    if (strcmp(name, SPEC_BENCH) == 0) name = MT_BENCH.name;
    size_t n = strcspn(name, ":");
    *frame = NULL;
    for (size_t i = 0; i < FORMATS_COUNT; i++)
        if (strlen(FORMATS[i]->name) == n && memcmp(FORMATS[i]->name, name, n) == 0) {
            if (name[n] && !(*frame = format_frame(FORMATS[i], name + n + 1, e))) return NULL;
            return FORMATS[i];
        }
    const char *nearest = suggest(name, FORMATS, FORMATS_COUNT, format_name);
    if (nearest) error_input(e, "there is no format '%s'; did you mean '%s'?", name, nearest);
    else error_input(e, "there is no format '%s'; 'outpace datasets --formats' lists them", name);
    return NULL;
}

static bool has_keys(const json_t *row, const char *keys) {
    for (const char *k = keys; *k;) {
        size_t n = strcspn(k, " ");
        if (!row_find(row, k, n)) return false;
        k += n + (k[n] == ' ');
    }
    return true;
}

const Format *format_of_row(const json_t *row) {
    for (size_t i = 0; i < FORMATS_COUNT; i++)
        if (!FORMATS[i]->is_text && has_keys(row, FORMATS[i]->keys)) return FORMATS[i];
    return FORMATS[FORMATS_COUNT - 1];
}
