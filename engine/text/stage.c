// Reads and runs lists of steps, and keeps their words. Invariant: word i is text[ends[i - 1], ends[i]), and
// no word is empty.
#include "engine/text/stage.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

bool step_read_text(Step *s, const json_t *part, const char *key, const char *place, Error *e) {
    const char *text = field_text(part, key, place, e);
    if (!text) return false;
    s->length = strlen(text);
    s->text = mem_text(text, s->length);
    return true;
}

bool step_read_pattern(Step *s, const json_t *part, const char *place, Error *e) {
    const json_t *pattern = json_object_get(part, "pattern");
    const char *literal = json_string_value(json_object_get(pattern, "String"));
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    if (!literal == !regex)
        return error_input(e, "'pattern' in '%s' must be {\"String\": ...} or {\"Regex\": ...}", place);
    s->pattern = pattern_open(literal ? literal : regex, literal != NULL, place, e);
    return s->pattern != NULL;
}

static bool read_one(Steps *s, const StepTable *table, const json_t *part, const char *place, Error *e) {
    const char *type = field_text(part, "type", place, e);
    if (!type) return false;
    if (s->count == STEPS_MAX)
        return error_input(e, "'%s' has more than %d steps of the kind %s", place, STEPS_MAX, table->what);
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(type, table->kinds[i].type) != 0) continue;
        Step *step = &s->items[s->count++];
        step->kind = &table->kinds[i];
        return !step->kind->read || step->kind->read(step, part, place, e);
    }
    LOCAL_TEXT known = {0};
    for (size_t i = 0; i < table->count; i++)
        text_printf(&known, "%s%s", i ? ", " : "", table->kinds[i].type);
    return error_input(e, "the %s '%.40s' of '%s' is not supported; these are: Sequence, %s", table->what,
                       type, place, text_get(&known));
}

bool steps_read(Steps *s, const StepTable *table, const json_t *part, const char *place, Error *e) {
    const char *type = json_string_value(json_object_get(part, "type"));
    if (!part || json_is_null(part)) return true;
    if (!type || strcmp(type, "Sequence") != 0) return read_one(s, table, part, place, e);
    const json_t *members = json_object_get(part, table->list);
    for (size_t i = 0; i < json_array_size(members); i++)
        if (!steps_read(s, table, json_array_get(members, i), place, e)) return false;
    return json_is_array(members) ||
           error_input(e, "a Sequence of '%s' needs a list '%s'", place, table->list);
}

void steps_release(Steps *s) {
    for (size_t i = 0; i < s->count; i++) {
        pattern_close(s->items[i].pattern);
        mem_free(s->items[i].text);
    }
    *s = (Steps){.count = 0};
}

static void stage_check(UNUSED const Words *w) {
    assert(w->count <= w->capacity);
    for (size_t i = 0; i < w->count; i++) assert(words_from(w, i) < w->ends[i]);
    assert(w->text.length == words_from(w, w->count));
}

bool steps_run(const Steps *s, Words *words, Words *other, Error *e) {
    for (size_t i = 0; i < s->count; i++) {
        words_clear(other);
        other->at_start = words->at_start;
        if (!s->items[i].kind->run(&s->items[i], words, other, e)) return false;
        Words swap = *words;
        *words = *other;
        *other = swap;
        stage_check(words);
    }
    return true;
}

// --- words

void words_end(Words *w) {
    if (w->text.length == words_from(w, w->count)) return;
    *LIST_ADD(w->ends, w->count, w->capacity) = w->text.length;
}

void words_add(Words *w, const char *word, size_t n) {
    text_add(&w->text, word, n);
    words_end(w);
}

void words_clear(Words *w) {
    text_clear(&w->text);
    w->count = 0;
    w->at_start = false;
}

void words_release(Words *w) {
    text_release(&w->text);
    mem_free(w->ends);
    *w = (Words){0};
}
