// The pre-tokenizers: each cuts every word into smaller ones.
#include "engine/text/stage.h"

#include "engine/base/json.h"

#include <string.h>

// --- by a pattern --------------------------------------------------------------------------------------

// Receives the parts of a word in order, matches and the text between them, and joins or drops them.
typedef struct {
    const Step *step;
    Words *out;
    bool any;        // this word has had a part
    bool last_match; // and the last one was a match
} Joiner;

// Whether this part stays in one word with the part before it.
static bool joins(const Joiner *j, bool match) {
    switch (j->step->behavior) {
    case SPLIT_WITH_PREVIOUS: return match && !j->last_match;
    case SPLIT_WITH_NEXT: return !match && j->last_match;
    case SPLIT_CONTIGUOUS: return match == j->last_match;
    case SPLIT_ISOLATED:
    case SPLIT_REMOVED: break;
    }
    return false;
}

static void add_part(Joiner *j, const char *text, size_t n, bool match) {
    match ^= j->step->invert;
    if (j->any && !joins(j, match)) words_end(j->out);
    if (j->step->behavior != SPLIT_REMOVED || !match) text_add(&j->out->text, text, n);
    else if (!j->any && j->out->count == 0 && n) j->out->at_start = false;
    j->any = true;
    j->last_match = match;
}

static bool split_word(Search *search, const Step *s, const char *word, size_t n, Words *out, Error *e) {
    Joiner j = {.step = s, .out = out};
    bool found = true;
    size_t from, to, done = 0;
    search_begin(search, word, n);
    while (found) {
        if (!search_next(search, &found, &from, &to, e)) return false;
        if (!found) break;
        if (from > done) add_part(&j, word + done, from - done, false);
        add_part(&j, word + from, to - from, true);
        done = to;
    }
    if (done < n) add_part(&j, word + done, n - done, false);
    words_end(out);
    return true;
}

static bool run_split(const Step *s, const Words *in, Words *out, Error *e) {
    LOCAL(search_close) Search search;
    search_open(&search, s->pattern);
    for (size_t i = 0; i < in->count; i++) {
        size_t from = words_from(in, i);
        if (!split_word(&search, s, in->text.data + from, in->ends[i] - from, out, e)) return false;
    }
    return true;
}

static bool read_behavior(Step *s, const json_t *part, SplitBehavior fallback, const char *place, Error *e) {
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
                                        "Contiguous"};
    s->behavior = fallback;
    if (!field_present(part, "behavior")) return true;
    const char *name = field_text(part, "behavior", place, e);
    if (!name) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        s->behavior = (SplitBehavior)i;
        return true;
    }
    return error_input(e,
                       "'behavior' in '%s' is '%.40s', must be Isolated, Removed, MergedWithPrevious, "
                       "MergedWithNext or Contiguous",
                       place, name);
}

static bool read_split(Step *s, const json_t *part, const char *place, Error *e) {
    return read_behavior(s, part, SPLIT_ISOLATED, place, e) &&
           field_bool_optional(part, "invert", &s->invert, place, e) && step_read_pattern(s, part, place, e);
}

static bool read_digits(Step *s, const json_t *part, const char *place, Error *e) {
    bool individual = false;
    if (!field_bool_optional(part, "individual_digits", &individual, place, e)) return false;
    s->behavior = individual ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    s->pattern = pattern_open("\\p{N}", false, place, e);
    return s->pattern != NULL;
}

static bool read_punctuation(Step *s, const json_t *part, const char *place, Error *e) {
    s->pattern = pattern_open("[\\p{P}$+<=>^`|~]", false, place, e);
    return s->pattern && read_behavior(s, part, SPLIT_ISOLATED, place, e);
}

// --- Metaspace -----------------------------------------------------------------------------------------

static bool read_scheme(Step *s, const json_t *part, const char *place, Error *e) {
    const char *scheme =
        field_present(part, "prepend_scheme") ? field_text(part, "prepend_scheme", place, e) : "";
    bool prefix = true;
    if (!scheme || !field_bool_optional(part, "add_prefix_space", &prefix, place, e)) return false;
    if (strcmp(scheme, "first") == 0) s->prepend = PREPEND_FIRST;
    else if (strcmp(scheme, "never") == 0 || (!*scheme && !prefix)) s->prepend = PREPEND_NEVER;
    else if (strcmp(scheme, "always") == 0 || !*scheme) s->prepend = PREPEND_ALWAYS;
    else
        return error_input(e, "'prepend_scheme' in '%s' is '%.40s', must be first, never or always", place,
                           scheme);
    return true;
}

static bool read_metaspace(Step *s, const json_t *part, const char *place, Error *e) {
    s->right = true; // cut before every mark
    return read_scheme(s, part, place, e) && step_read_text(s, part, "replacement", place, e) &&
           field_bool_optional(part, "split", &s->right, place, e) &&
           (s->length || error_input(e, "'replacement' in '%s' is empty", place));
}

static bool starts_with(const char *word, size_t n, const char *mark, size_t length) {
    return n >= length && memcmp(word, mark, length) == 0;
}

static void mark_word(const Step *s, const char *word, size_t n, bool first, Words *out) {
    bool has = starts_with(word, n, s->text, s->length) || *word == ' ';
    bool put = !has && (s->prepend == PREPEND_ALWAYS || (s->prepend == PREPEND_FIRST && first));
    if (put) text_add(&out->text, s->text, s->length);
    for (size_t i = 0, end; i < n; i = end) {
        bool space = word[i] == ' ', mark = space || starts_with(word + i, n - i, s->text, s->length);
        end = i + (space || !mark ? 1 : s->length);
        if (mark && i && s->right) words_end(out);
        if (space) {
            text_add(&out->text, s->text, s->length);
            continue;
        }
        while (!mark && end < n && word[end] != ' ' && word[end] != s->text[0]) end++;
        text_add(&out->text, word + i, end - i);
    }
    words_end(out);
}

static bool run_metaspace(const Step *s, const Words *in, Words *out, UNUSED Error *e) {
    for (size_t i = 0; i < in->count; i++) {
        size_t from = words_from(in, i);
        mark_word(s, in->text.data + from, in->ends[i] - from, i == 0 && in->at_start, out);
    }
    return true;
}

// --- ByteLevel -----------------------------------------------------------------------------------------

static const char GPT2_WORDS[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static bool read_byte_level(Step *s, const json_t *part, const char *place, Error *e) {
    bool prefix = true, regex = true;
    if (!field_bool_optional(part, "add_prefix_space", &prefix, place, e) ||
        !field_bool_optional(part, "use_regex", &regex, place, e))
        return false;
    s->prepend = prefix ? PREPEND_ALWAYS : PREPEND_NEVER;
    byte_letters_init(&s->letters);
    if (regex) s->pattern = pattern_open(GPT2_WORDS, false, place, e);
    return s->pattern || !regex;
}

static bool run_byte_level(const Step *s, const Words *in, Words *out, Error *e) {
    LOCAL(words_release) Words spaced = {.at_start = in->at_start}, split = {.at_start = in->at_start};
    const Words *words = in;
    if (s->prepend == PREPEND_ALWAYS) {
        for (size_t i = 0; i < in->count; i++) {
            size_t from = words_from(in, i);
            if (in->text.data[from] != ' ') text_add(&spaced.text, " ", 1);
            words_add(&spaced, in->text.data + from, in->ends[i] - from);
        }
        words = &spaced;
    }
    if (s->pattern) {
        if (!run_split(s, words, &split, e)) return false;
        words = &split;
    }
    for (size_t i = 0; i < words->count; i++) {
        size_t from = words_from(words, i);
        byte_letters_write(&s->letters, words->text.data + from, words->ends[i] - from, &out->text);
        words_end(out);
    }
    return true;
}

static const StepKind KINDS[] = {
    {"ByteLevel", read_byte_level, run_byte_level, 0},
    {"Split", read_split, run_split, 0},
    {"Digits", read_digits, run_split, 0},
    {"Punctuation", read_punctuation, run_split, 0},
    {"Metaspace", read_metaspace, run_metaspace, 0},
};

const StepTable step_splitters = {"pre_tokenizer", "pretokenizers", KINDS, sizeof KINDS / sizeof *KINDS};
