// ROUGE. Words become numbers once (equal words, equal numbers); n-grams and subsequences then compare
// integers. Invariant: every score is in [0, 1].
#include "datasets/rouge.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The words of both texts, each with a number that equal words share: [0, split) are the reference's.
typedef struct Words {
    char *text;         // the words, a NUL after each
    const char **words; // (count)
    uint32_t *ids;      // (count)
    size_t count, split;
} Words;

// Returns the next letter or digit in lower case, 0 for any other character. Two characters outside ASCII
// have a lower case in ASCII: the Kelvin sign, and the dotted I, whose mark ends the word (LAST_I).
enum { LAST_I = 'I' };

static char fold(const char **s) {
    char c = *(*s)++;
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) return c;
    bool is_dotted = c == '\xC4' && **s == '\xB0', is_kelvin = c == '\xE2' && strncmp(*s, "\x84\xAA", 2) == 0;
    *s += is_dotted ? 1 : is_kelvin ? 2 : 0;
    return is_dotted ? LAST_I : is_kelvin ? 'k' : 0;
}

// Writes the next word of `s` to `to` and returns its length, 0 at the end.
static size_t next_word(const char **s, char *to) {
    char c = 0;
    size_t n = 0;
    while (**s && !(c = fold(s))) continue;
    for (; c && c != LAST_I; c = **s ? fold(s) : 0) to[n++] = c;
    if (c == LAST_I) to[n++] = 'i';
    return n;
}

// Writes the words of `s` to `to` and returns the place after them.
static char *split_words(Words *w, const char *s, char *to) {
    for (size_t n; (n = next_word(&s, to));) {
        if (n > 3) n = porter_stem(to, n);
        if (n == 0) continue;
        w->words[w->count++] = to;
        to[n] = 0;
        to += n + 1;
    }
    return to;
}

static int compare(const void *a, const void *b) {
    return strcmp(**(const char **const *)a, **(const char **const *)b);
}

// Sorted, equal words are neighbors. `sorted` points into `words`.
static void number_words(Words *w, const char ***sorted) {
    uint32_t id = 0;
    for (size_t i = 0; i < w->count; i++) sorted[i] = &w->words[i];
    qsort(sorted, w->count, sizeof *sorted, compare);
    for (size_t i = 0; i < w->count; i++) {
        if (i && strcmp(*sorted[i], *sorted[i - 1]) != 0) id++;
        w->ids[sorted[i] - w->words] = id;
    }
}

static void words_open(Words *w, const char *reference, const char *candidate) {
    size_t most =
        strlen(reference) + strlen(candidate) + 2; // every word is followed by another byte or the end
    *w = (Words){.text = mem_new(most, 1),
                 .words = mem_new(most, sizeof *w->words),
                 .ids = mem_new(most, sizeof *w->ids)};
    const char ***sorted = mem_new(most, sizeof *sorted);
    char *to = split_words(w, reference, w->text);
    w->split = w->count;
    split_words(w, candidate, to);
    assert(w->count < most);
    number_words(w, sorted);
    mem_free(sorted);
}

static RougeScore score(size_t common, size_t reference, size_t candidate) {
    RougeScore s = {candidate ? (double)common / (double)candidate : 0,
                    reference ? (double)common / (double)reference : 0, 0};
    double sum = s.precision + s.recall;
    s.f = sum > 0 ? 2 * s.precision * s.recall / sum : 0;
    assert(common <= reference && common <= candidate && s.f >= 0 && s.f <= 1 + 1e-9);
    return s;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Writes the n-grams (n 1 or 2) of a text, sorted; returns their number.
static size_t grams(const uint32_t *ids, size_t count, size_t n, uint64_t *out) {
    size_t grams = count >= n ? count - n + 1 : 0;
    for (size_t i = 0; i < grams; i++) out[i] = n == 1 ? ids[i] : (uint64_t)ids[i] << 32 | ids[i + 1];
    qsort(out, grams, sizeof *out, by_value);
    return grams;
}

static RougeScore score_grams(const Words *w, size_t n, uint64_t *scratch) {
    size_t a = grams(w->ids, w->split, n, scratch), common = 0, i = 0, k = 0;
    uint64_t *other = scratch + a;
    size_t b = grams(w->ids + w->split, w->count - w->split, n, other);
    while (i < a && k < b)
        if (scratch[i] == other[k]) i++, k++, common++;
        else if (scratch[i] < other[k]) i++;
        else k++;
    return score(common, a, b);
}

// Keeps one row of the table of longest common subsequences.
static RougeScore score_longest(const Words *w, uint64_t *row) {
    const uint32_t *a = w->ids, *b = w->ids + w->split;
    size_t n = w->split, m = w->count - w->split;
    memset(row, 0, (m + 1) * sizeof *row);
    for (size_t i = 0; i < n; i++) {
        uint64_t corner = 0; // row[k] of the row above
        for (size_t k = 0; k < m; k++) {
            uint64_t above = row[k + 1];
            if (a[i] == b[k]) row[k + 1] = corner + 1;
            else if (row[k] > above) row[k + 1] = row[k];
            corner = above;
        }
    }
    return score((size_t)row[m], n, m);
}

Rouge rouge_score(const char *reference, const char *candidate) {
    Words w;
    words_open(&w, reference, candidate);
    LOCAL_MEMORY uint64_t *scratch = mem_new(w.count + 1, sizeof *scratch);
    Rouge r = {score_grams(&w, 1, scratch), score_grams(&w, 2, scratch), score_longest(&w, scratch)};
    MEM_FREE(w.text, w.words, w.ids);
    return r;
}

static void take_better(RougeScore *best, const RougeScore *s) {
    if (s->f > best->f) *best = *s;
}

Rouge rouge_best(const char *const *references, int count, const char *candidate) {
    assert(count > 0);
    Rouge best = rouge_score(references[0], candidate);
    for (int i = 1; i < count; i++) {
        Rouge r = rouge_score(references[i], candidate);
        take_better(&best.one, &r.one);
        take_better(&best.two, &r.two);
        take_better(&best.longest, &r.longest);
    }
    return best;
}

// --- Porter's stemmer -----------------------------------------------------------------------------------

// Porter's stemmer. A word is a sequence of consonants and vowels, [C](VC)^m[V]; m is its measure. Each step
// takes the first rule whose ending the word has and no other, even if the rule's condition on the stem
// before the ending fails. Invariant: a step never makes a word longer than it was at the start.

typedef struct Word {
    char *at;
    size_t n;
} Word;

// A y is a consonant after a vowel, and a vowel after a consonant; as the first letter it's a consonant.
static bool is_consonant(const char *s, size_t i) {
    bool flip = false;
    for (; i > 0 && s[i] == 'y'; i--) flip = !flip;
    return (strchr("aeiou", s[i]) == NULL) != flip;
}

// How often a vowel is followed by a consonant in the first n letters.
static int measure(const char *s, size_t n) {
    int m = 0;
    bool before = true, consonant;
    for (size_t i = 0; i < n; i++, before = consonant) {
        consonant = s[i] == 'y' ? i == 0 || !before : strchr("aeiou", s[i]) == NULL;
        m += consonant && !before;
    }
    return m;
}

static bool has_vowel(const char *s, size_t n) {
    bool before = false;
    for (size_t i = 0; i < n; i++) {
        before = s[i] == 'y' ? i == 0 || !before : strchr("aeiou", s[i]) == NULL;
        if (!before) return true;
    }
    return false;
}

// Consonant, vowel, consonant, the last not w, x or y; NLTK: or two letters, a vowel and a consonant.
static bool ends_in_cvc(const char *s, size_t n) {
    if (n == 2) return !is_consonant(s, 0) && is_consonant(s, 1);
    return n >= 3 && is_consonant(s, n - 3) && !is_consonant(s, n - 2) && is_consonant(s, n - 1) &&
           !strchr("wxy", s[n - 1]);
}

static bool ends(const Word *w, const char *ending) {
    size_t n = strlen(ending);
    return w->n >= n && memcmp(w->at + w->n - n, ending, n) == 0;
}

// Replaces the last `cut` letters by another ending. Only one rule makes a word longer: it adds an -e, after
// -ed or -ing was cut.
static void replace(Word *w, size_t cut, const char *ending) {
    size_t n = strlen(ending);
    assert(cut <= w->n && (n <= cut || (cut == 0 && n == 1)));
    memcpy(w->at + w->n - cut, ending, n);
    w->n += n - cut;
}

typedef struct Rule {
    const char *ending, *becomes;
} Rule;

// Applies the first rule whose ending fits, if the measure of the stem before it is more than `above`.
static void apply(Word *w, const Rule *rules, size_t count, int above) {
    for (size_t i = 0; i < count; i++) {
        if (!ends(w, rules[i].ending)) continue;
        size_t cut = strlen(rules[i].ending);
        if (measure(w->at, w->n - cut) > above) replace(w, cut, rules[i].becomes);
        return;
    }
}
#define APPLY(word, rules, above) apply(word, rules, sizeof(rules) / sizeof *(rules), above)

// Plurals.
static void step_1a(Word *w) {
    if (ends(w, "ies") && w->n == 4) replace(w, 3, "ie");
    else if (ends(w, "sses")) replace(w, 4, "ss");
    else if (ends(w, "ies")) replace(w, 3, "i");
    else if (!ends(w, "ss") && ends(w, "s")) replace(w, 1, "");
}

// After -ed or -ing was cut: puts back an e, or drops a double letter.
static void restore(Word *w) {
    if (ends(w, "at") || ends(w, "bl") || ends(w, "iz")) replace(w, 0, "e");
    else if (w->n >= 2 && w->at[w->n - 1] == w->at[w->n - 2] && is_consonant(w->at, w->n - 1)) {
        if (!strchr("lsz", w->at[w->n - 1])) w->n--;
    } else if (measure(w->at, w->n) == 1 && ends_in_cvc(w->at, w->n)) replace(w, 0, "e");
}

static void step_1b(Word *w) {
    if (ends(w, "ied")) {
        replace(w, 3, w->n == 4 ? "ie" : "i");
        return;
    }
    if (ends(w, "eed")) {
        if (measure(w->at, w->n - 3) > 0) w->n--;
        return;
    }
    size_t cut = ends(w, "ed") ? 2 : ends(w, "ing") ? 3 : 0;
    if (cut == 0 || !has_vowel(w->at, w->n - cut)) return;
    w->n -= cut;
    restore(w);
}

static void step_1c(Word *w) {
    if (ends(w, "y") && w->n > 2 && is_consonant(w->at, w->n - 2)) w->at[w->n - 1] = 'i';
}

static void step_2(Word *w) {
    static const Rule rules[] = {
        {"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"},
        {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"}, {"eli", "e"},     {"ousli", "ous"},
        {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},  {"alism", "al"},  {"iveness", "ive"},
        {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},  {"iviti", "ive"}, {"biliti", "ble"},
        {"fulli", "ful"},
    };
    // The rules apply to the result too: -ationalli becomes -ational, then -ate.
    if (ends(w, "alli") && measure(w->at, w->n - 4) > 0) w->n -= 2;
    if (ends(w, "logi")) { // its l counts as part of the stem
        if (measure(w->at, w->n - 3) > 0) w->n--;
    } else APPLY(w, rules, 0);
}

static void step_3(Word *w) {
    static const Rule rules[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                                 {"ical", "ic"},  {"ful", ""},   {"ness", ""}};
    APPLY(w, rules, 0);
}

static void step_4(Word *w) {
    static const Rule rules[] = {{"al", ""},   {"ance", ""}, {"ence", ""}, {"er", ""},    {"ic", ""},
                                 {"able", ""}, {"ible", ""}, {"ant", ""},  {"ement", ""}, {"ment", ""},
                                 {"ent", ""},  {"ou", ""},   {"ism", ""},  {"ate", ""},   {"iti", ""},
                                 {"ous", ""},  {"ive", ""},  {"ize", ""}};
    if (!ends(w, "ion")) APPLY(w, rules, 1);
    else if (w->n > 3 && strchr("st", w->at[w->n - 4]) && measure(w->at, w->n - 3) > 1) w->n -= 3;
}

static void step_5(Word *w) {
    if (ends(w, "e")) {
        int m = measure(w->at, w->n - 1);
        if (m > 1 || (m == 1 && !ends_in_cvc(w->at, w->n - 1))) w->n--;
    }
    if (ends(w, "ll") && measure(w->at, w->n - 1) > 1) w->n--;
}

// Words that the steps would spoil.
static bool irregular(Word *w) {
    static const Rule words[] = {
        {"skies", "sky"},      {"dying", "die"},       {"lying", "lie"},        {"tying", "tie"},
        {"sky", "sky"},        {"news", "news"},       {"innings", "inning"},   {"inning", "inning"},
        {"outings", "outing"}, {"outing", "outing"},   {"cannings", "canning"}, {"canning", "canning"},
        {"howe", "howe"},      {"proceed", "proceed"}, {"exceed", "exceed"},    {"succeed", "succeed"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].ending) == w->n && ends(w, words[i].ending)) {
            replace(w, w->n, words[i].becomes);
            return true;
        }
    return false;
}

size_t porter_stem(char *word, size_t n) {
    Word w = {word, n};
    if (irregular(&w) || n <= 2) return w.n;
    step_1a(&w);
    step_1b(&w);
    step_1c(&w);
    step_2(&w);
    step_3(&w);
    step_4(&w);
    step_5(&w);
    assert(w.n <= n);
    return w.n;
}
