// The behaviours of Split against a slow fold over a list of parts, and a step's effect on the start of a
// text.
#include "tests/support/check.h"

#include "engine/text/stage.h"

#include <stdio.h>
#include <string.h>

enum { LENGTH_MAX = 12 };

static const char *const BEHAVIORS[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
                                        "Contiguous"};

static void open_steps(Steps *steps, json_t *part) {
    Error e = {0};
    *steps = (Steps){.count = 0};
    if (!steps_read(steps, &step_splitters, part, "test", &e)) fail_msg("%s", e.text);
    json_decref(part);
}

// The words that the steps make of a text, each between bars.
static void words_of(const Steps *steps, const char *text, bool at_start, Text *out) {
    Error e = {0};
    Words words = {.at_start = at_start}, other = {0};
    words_add(&words, text, strlen(text));
    if (!steps_run(steps, &words, &other, &e)) fail_msg("%s", e.text);
    for (size_t i = 0; i < words.count; i++) {
        size_t from = words_from(&words, i);
        text_puts(out, "|");
        text_add(out, words.text.data + from, words.ends[i] - from);
    }
    words_release(&words);
    words_release(&other);
}

// --- the slow fold: parts first, then joined two by two ------------------------------------------------

typedef struct {
    int from, to;
    bool match, gone;
} Part;

// The matches of "a", or of "a+", and what is between them.
static int parts_of(const char *text, bool runs, Part *out) {
    int count = 0, n = (int)strlen(text);
    for (int i = 0; i < n; count++) {
        int to = i + 1;
        bool match = text[i] == 'a';
        while (to < n && (text[to] == 'a') == match && (runs || !match)) to++;
        out[count] = (Part){i, to, match, false};
        i = to;
    }
    return count;
}

// Whether the second of two neighbours, as they were at first, goes on the first one's word.
static bool stay_together(const char *behavior, const Part *parts, int i) {
    if (strcmp(behavior, "Contiguous") == 0) return parts[i - 1].match == parts[i].match;
    if (strcmp(behavior, "MergedWithPrevious") == 0) return parts[i].match && !parts[i - 1].match;
    if (strcmp(behavior, "MergedWithNext") == 0) return parts[i - 1].match && !parts[i].match;
    return false;
}

static void slow_split(const char *text, const char *behavior, bool runs, bool invert, Text *out) {
    Part parts[LENGTH_MAX];
    int count = parts_of(text, runs, parts);
    for (int i = 0; i < count; i++) parts[i].match ^= invert;
    for (int i = 0; i < count; i++) {
        if (strcmp(behavior, "Removed") == 0 && parts[i].match) continue;
        if (i == 0 || !stay_together(behavior, parts, i)) text_puts(out, "|");
        text_add(out, text + parts[i].from, (size_t)(parts[i].to - parts[i].from));
    }
}

static void behaviors(void **state) {
    (void)state;
    Random r = test_random(9);
    for (int b = 0; b < 5; b++)
        for (int k = 0; k < 4; k++) {
            bool runs = k & 1, invert = k & 2;
            Steps steps;
            open_steps(&steps, json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern", "Regex",
                                         runs ? "a+" : "a", "behavior", BEHAVIORS[b], "invert", invert));
            for (int i = 0; i < 300; i++) {
                char text[LENGTH_MAX + 1] = "";
                Text want = {0}, got = {0};
                for (int n = test_between(&r, 0, LENGTH_MAX), c = 0; c < n; c++)
                    text[c] = "ab"[test_between(&r, 0, 1)];
                slow_split(text, BEHAVIORS[b], runs, invert, &want);
                words_of(&steps, text, true, &got);
                if (strcmp(text_get(&want), text_get(&got)) != 0)
                    fail_msg("%s%s of '%s': wanted %s, got %s", BEHAVIORS[b], invert ? " inverted" : "", text,
                             text_get(&want), text_get(&got));
                text_release(&want);
                text_release(&got);
            }
            steps_release(&steps);
        }
}

// --- rows ----------------------------------------------------------------------------------------------

typedef struct {
    const char *part; // JSON, with ' for "
    const char *text;
    bool at_start;
    const char *want;
} Row;

#define META(scheme, split) \
    "{'type':'Metaspace','replacement':'_','prepend_scheme':'" scheme "','split':" split "}"
#define BEHIND_REMOVED(next)                                                                             \
    "{'type':'Sequence','pretokenizers':[{'type':'Split','pattern':{'String':'x'},'behavior':'Removed'}" \
    "," next "]}"

static const Row ROWS[] = {
    {META("always", "true"), "a b  c", true, "|_a|_b|_|_c"},
    {META("always", "true"), " a", true, "|_a"},
    {META("always", "true"), "_a", true, "|_a"},
    {META("always", "false"), "a b", false, "|_a_b"},
    {META("first", "true"), "a b", true, "|_a|_b"},
    {META("first", "true"), "a b", false, "|a|_b"},
    {META("never", "true"), "a b", true, "|a|_b"},
    {META("never", "true"), " ", true, "|_"},
    {META("never", "true"), "a ", true, "|a|_"},
    {BEHIND_REMOVED(META("first", "true")), "axb", true, "|_a|b"}, // the first word of the text only
    {BEHIND_REMOVED(META("first", "true")), "xaxb", true, "|a|b"}, // which is not at its start here
    {BEHIND_REMOVED(META("first", "true")), "axb", false, "|a|b"},
    {BEHIND_REMOVED(META("always", "true")), "xaxb", true, "|_a|_b"},
    {"{'type':'Digits','individual_digits':true}", "a12b\xc2\xbd", true, "|a|1|2|b|\xc2\xbd"},
    {"{'type':'Digits','individual_digits':false}", "a12b", true, "|a|12|b"},
    {"{'type':'Punctuation'}", "a+,b\xe2\x80\x94", true, "|a|+|,|b|\xe2\x80\x94"},
    {"{'type':'Punctuation','behavior':'Contiguous'}", "a+,b", true, "|a|+,|b"},
    {"{'type':'ByteLevel','use_regex':false,'add_prefix_space':true}", "a b", true,
     "|\xc4\xa0"
     "a\xc4\xa0"
     "b"},
    {"{'type':'ByteLevel','use_regex':false,'add_prefix_space':true}", " b", true,
     "|\xc4\xa0"
     "b"},
    {"{'type':'ByteLevel','add_prefix_space':false}", "it's  12", true,
     "|it|'s|\xc4\xa0|\xc4\xa0"
     "12"},
    {"{'type':'Split','pattern':{'Regex':'x*'},'behavior':'Isolated'}", "axb", true, "|a|x|b"},
};

static json_t *json_of(const char *text) {
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *p = copy; *p; p++)
        if (*p == '\'') *p = '"';
    json_t *v = json_loads(copy, 0, NULL);
    if (!v) fail_msg("the test's own JSON is wrong: %s", copy);
    return v;
}

static void rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Steps steps;
        Text got = {0};
        open_steps(&steps, json_of(ROWS[i].part));
        words_of(&steps, ROWS[i].text, ROWS[i].at_start, &got);
        if (strcmp(text_get(&got), ROWS[i].want) != 0)
            fail_msg("%s of '%s': wanted %s, got %s", ROWS[i].part, ROWS[i].text, ROWS[i].want,
                     text_get(&got));
        text_release(&got);
        steps_release(&steps);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(behaviors), cmocka_unit_test(rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
