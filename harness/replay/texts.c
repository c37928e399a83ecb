// Texts of a replay: a dataset's answers cut by a tokenizer, or rows of a file that has token ids already.
// Invariant: every id of a text is in [0, vocab), every text has a token of prompt and one of answer, and its
// lists, where the file was read with some, have as many entries as its answer has tokens.
#include "harness/replay/replay.h"

#include "datasets/format.h"
#include "engine/base/memory.h"
#include "harness/inputs/prompts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static char *copy(const char *text) { return text ? mem_text(text, strlen(text)) : NULL; }

static void replay_texts_check(const ReplayTexts *t) {
    for (size_t i = 0; i < t->count; i++) {
        const ReplayText *x = &t->texts[i];
        assert(x->prompt > 0 && x->prompt < x->count && x->count <= t->longest);
        for (int k = 0; k < x->count; k++) assert(x->ids[k] >= 0 && x->ids[k] < t->vocab);
        for (int k = 0; k < t->list_count; k++) assert(x->lists[k]);
    }
}

// Takes the ids and the texts of `text`.
static bool add_text(ReplayTexts *out, const ReplayText *text, Error *e) {
    *LIST_ADD(out->texts, out->count, out->capacity) = *text;
    out->tokens += (size_t)(text->count - text->prompt);
    if (text->count > out->longest) out->longest = text->count;
    return text->count <= 1 << 24 || error_input(e, "a text of %d tokens is too long to replay", text->count);
}

void replay_texts_release(ReplayTexts *t) {
    for (size_t i = 0; i < t->count; i++) {
        MEM_FREE(t->texts[i].ids, t->texts[i].name, t->texts[i].task);
        for (int k = 0; k < REPLAY_LISTS; k++) mem_free(t->texts[i].lists[k]);
    }
    for (int k = 0; k < t->list_count; k++) mem_free(t->lists[k]);
    MEM_FREE(t->texts, t->name, t->model);
    *t = (ReplayTexts){0};
}

// --- answers of a dataset --------------------------------------------------------------------------------

// A turn without an answer, or with an empty one, ends the conversation.
static bool add_prompt(ReplayTexts *out, const DatasetPrompt *p, int number, const Tokenizer *tokenizer,
                       const Template *template, Error *e) {
    LOCAL(conversation_release) Conversation c;
    bool ok = true, answered = true;
    int turn = 0, turns = p->turn_count < CONVERSATION_TURNS ? p->turn_count : CONVERSATION_TURNS;
    conversation_begin(&c, tokenizer, template);
    for (; ok && answered && turn < turns; turn++) {
        LOCAL(ids_release) IdList prompt = {0}, answer = {0};
        const char *text = NULL;
        for (int i = p->reference_count; i-- > 0;)
            if (p->references[i].turn == turn && p->references[i].text[0]) text = p->references[i].text;
        ok = !text || tokenizer_encode(tokenizer, text, strlen(text), false, &answer, e);
        answered = ok && answer.count > 0;
        ok = ok && (!answered || conversation_ask(&c, p->turns[turn], &prompt, e));
        if (ok && answered && !prompt.count) ok = error_input(e, "the prompt has no token");
        if (ok && answered) {
            ReplayText t = {.prompt = (int)prompt.count,
                            .count = (int)(prompt.count + answer.count),
                            .ids = mem_new(prompt.count + answer.count, sizeof *t.ids),
                            .name = copy(p->id),
                            .task = copy(p->task),
                            .number = number,
                            .turn = turn};
            memcpy(t.ids, prompt.ids, prompt.count * sizeof *t.ids);
            memcpy(t.ids + prompt.count, answer.ids, answer.count * sizeof *t.ids);
            ok = add_text(out, &t, e) && conversation_reply(&c, answer.ids, (int)answer.count, e);
        }
    }
    if (!answered) out->unanswered += (size_t)(turns - turn + 1);
    return ok || error_within(e, "prompt '%s'", p->id);
}

bool replay_texts(const Dataset *d, const Tokenizer *tokenizer, const Template *template, ReplayTexts *out,
                  Error *e) {
    *out = (ReplayTexts){.vocab = tokenizer_size(tokenizer), .name = copy(d->name)};
    memcpy(out->sha256, d->sha256, sizeof out->sha256);
    for (size_t i = 0; i < d->count; i++)
        if (!add_prompt(out, &d->prompts[i], (int)i, tokenizer, template, e)) return false;
    replay_texts_check(out);
    return out->count > 0 ||
           error_input(e, "dataset '%s' has no answers to replay: a 'reference' to a prompt", d->name);
}

// --- rows of token ids -----------------------------------------------------------------------------------

// No vocabulary has more ids: an id beyond it is another number, or a damaged file.
enum { MOST_VOCAB = 1 << 20, MOST_ACCEPTED = 255 };

static const size_t MOST_BYTES = (size_t)1 << 30, MOST_EXPANDED = (size_t)4 << 30;

typedef struct TokenReading {
    const ReplayTokens *from;
    ReplayTexts *out;
    int top; // the vocabulary's size, or the most that it may be
    int largest;
} TokenReading;

static const json_t *at_path(const Row *row, const char *path) {
    return row_find(row->json, path, strlen(path));
}

// Adds the list's ids to `to`, from place `from` on.
static bool read_ids(TokenReading *g, const Row *row, const char *key, const json_t *list, int *to,
                     Error *e) {
    char what[128];
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
        if (value < 0 || value >= g->top) {
            if (value < 0) snprintf(what, sizeof what, "must hold token ids: entry %zu isn't one", i);
            else
                snprintf(what, sizeof what, "has id %lld at entry %zu, beyond %s of %d", (long long)value, i,
                         g->from->vocab ? "the vocabulary" : "any vocabulary", g->top);
            return row_error(row, key, what, e);
        }
        to[i] = (int)value;
        if (to[i] >= g->largest) g->largest = to[i] + 1;
    }
    return true;
}

static bool read_model(const TokenReading *g, const Row *row, Error *e) {
    const char *model = json_string_value(at_path(row, "model")), *first = g->out->model;
    if (g->out->count + g->out->unanswered + g->out->unequal == 0) {
        g->out->model = copy(model);
        return true;
    }
    if (model ? first && strcmp(model, first) == 0 : !first) return true;
    char what[256];
    snprintf(what, sizeof what, "is '%.80s', the first row's '%.80s': make a file of each model",
             model ? model : "missing", first ? first : "missing");
    return row_error(row, "model", what, e);
}

// *equal becomes false where the list is of another text.
static bool read_list(const Row *row, const char *key, int answer, uint8_t **to, bool *equal, Error *e) {
    const json_t *value = at_path(row, key);
    const json_t *list = json_is_object(value) ? json_object_get(value, "acc_len") : value;
    if (!json_is_array(list)) return row_error(row, key, "must be a list, or an object with 'acc_len'", e);
    *equal = *equal && json_array_size(list) == (size_t)answer;
    if (!*equal) return true;
    *to = mem_new((size_t)answer, sizeof **to);
    for (int i = 0; i < answer; i++) {
        const json_t *entry = json_array_get(list, (size_t)i);
        json_int_t x = json_is_integer(entry) ? json_integer_value(entry) : 0;
        if (x < 1 || x > MOST_ACCEPTED)
            return row_error(row, key, "must hold numbers from 1 to 255: accepted tokens, plus 1", e);
        (*to)[i] = (uint8_t)x;
    }
    return true;
}

static char *name_of(const Row *row) {
    static const char *const KEYS[] = {"id", "question_id", "task_id"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const json_t *id = at_path(row, KEYS[i]);
        if (json_is_string(id)) return copy(json_string_value(id));
        if (json_is_integer(id)) return mem_printf("%lld", (long long)json_integer_value(id));
    }
    return NULL;
}

static bool add_row(void *state, Row *row, Error *e) {
    TokenReading *g = state;
    const ReplayTokens *from = g->from;
    const json_t *prompt = at_path(row, from->prompt), *answer = at_path(row, from->answer);
    size_t seen = g->out->count + g->out->unanswered + g->out->unequal;
    bool equal = true;
    if (from->limit && seen >= from->limit) return true;
    if (!read_model(g, row, e)) return false;
    if (json_is_array(prompt) && json_array_size(prompt) == 0)
        return row_error(row, from->prompt, "is empty, but a prompt has at least one token", e);
    if (!json_is_array(prompt))
        return row_error(row, from->prompt, "must be a list of token ids (--prompt-ids names it)", e);
    if (!json_is_array(answer))
        return row_error(row, from->answer, "must be a list of token ids (--output-ids names it)", e);
    ReplayText text = {.prompt = (int)json_array_size(prompt), .number = (int)seen};
    text.count = text.prompt + (int)json_array_size(answer);
    text.ids = mem_new((size_t)text.count, sizeof *text.ids);
    text.name = name_of(row);
    text.task = copy(json_string_value(at_path(row, "category")));
    bool ok = read_ids(g, row, from->prompt, prompt, text.ids, e) &&
              read_ids(g, row, from->answer, answer, text.ids + text.prompt, e);
    for (int k = 0; ok && k < from->list_count; k++)
        ok = read_list(row, from->lists[k], text.count - text.prompt, &text.lists[k], &equal, e);
    if (ok && equal && text.count > text.prompt) return add_text(g->out, &text, e);
    if (ok) ++*(equal ? &g->out->unanswered : &g->out->unequal);
    LOCAL(replay_texts_release) ReplayTexts one = {.texts = mem_new(1, sizeof text), .count = 1};
    *one.texts = text;
    return ok;
}

// The file's name without its folder and without the ends of known formats.
static char *set_name(const char *path) {
    static const char *const ENDS[] = {".gz", ".jsonl", ".json"};
    const char *slash = strrchr(path, '/');
    char *name = copy(slash ? slash + 1 : path);
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        if (text_ends(name, ENDS[i]) && strlen(name) > strlen(ENDS[i]))
            name[strlen(name) - strlen(ENDS[i])] = 0;
    return name;
}

bool replay_tokens_parse(const ReplayTokens *from, const char *bytes, size_t n, ReplayTexts *out, Error *e) {
    *out = (ReplayTexts){.name = set_name(from->path), .list_count = from->list_count};
    for (int k = 0; k < from->list_count; k++) out->lists[k] = copy(from->lists[k]);
    TokenReading g = {.from = from, .out = out, .top = from->vocab ? from->vocab : MOST_VOCAB, .largest = 2};
    LOCAL_MEMORY char *unpacked = NULL;
    bool ok = sha256_bytes(bytes, n, out->sha256, e);
    if (ok && gzip_is(bytes, n)) ok = gzip_expand(bytes, n, from->path, MOST_EXPANDED, &unpacked, &n, e);
    ok = ok && rows_each(unpacked ? unpacked : bytes, n, from->path, ROWS_JSON, add_row, &g, e);
    if (ok && !out->count && !out->unequal)
        ok = error_input(e, "'%s' has no row with an answer to replay", from->path);
    else if (ok && !out->count)
        ok = error_input(e,
                         "'%s': the lists of all %zu rows differ in length from their answers: they "
                         "are of other texts",
                         from->path, out->unequal);
    out->vocab = from->vocab ? from->vocab : g.largest;
    if (ok) replay_texts_check(out);
    return ok;
}

bool replay_tokens(const ReplayTokens *from, ReplayTexts *out, Error *e) {
    LOCAL_MEMORY char *bytes = NULL;
    size_t n;
    *out = (ReplayTexts){.count = 0};
    if (!file_read(from->path, MOST_BYTES, &bytes, &n, e)) return false;
    return replay_tokens_parse(from, bytes, n, out, e);
}
