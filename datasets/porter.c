// Porter's stemmer. A word is a sequence of consonants and vowels, [C](VC)^m[V]; m is its measure. Each step
// takes the first rule whose ending the word has and no other, even if the rule's condition on the stem
// before the ending fails. Invariant: a step never makes a word longer than it was at the start.
#include "datasets/rouge.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

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
