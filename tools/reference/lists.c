// A value is read into items, changed, and printed again. Items that Python would not have side by side
// (numbers and texts) never meet: a grammar gives lists of one kind.
#include "tools/reference/lists.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 64, LETTERS = 48 };

typedef struct Item {
    bool is_text;
    long n;
    char s[LETTERS];
} Item;

typedef struct Value {
    enum { ONE, LIST, PAIRS } kind;
    Item items[ITEMS]; // (count)
    int count;
} Value;

static const char *read_item(const char *s, Item *item) {
    *item = (Item){.is_text = *s == '\''};
    if (!item->is_text) {
        char *end;
        item->n = strtol(s, &end, 10);
        return end == s ? NULL : end;
    }
    const char *end = strchr(s + 1, '\'');
    if (!end || end - s > LETTERS) return NULL;
    memcpy(item->s, s + 1, (size_t)(end - s - 1));
    return end + 1;
}

static bool read_value(const char *s, Value *v) {
    *v = (Value){.kind = *s == '[' ? LIST : ONE};
    if (v->kind == ONE) {
        v->count = 1;
        return read_item(s, v->items) != NULL;
    }
    for (s++; *s != ']'; s += strspn(s, ", ")) {
        if (v->count == ITEMS || !(s = read_item(s, &v->items[v->count++]))) return false;
    }
    return true;
}

// The letters of one text, as items.
static void take_apart(Value *v) {
    if (v->kind != ONE || !v->items[0].is_text) return;
    const Item whole = v->items[0];
    *v = (Value){.kind = LIST};
    for (const char *c = whole.s; *c && v->count < ITEMS; c++)
        v->items[v->count++] = (Item){.is_text = true, .s = {*c}};
}

static void print_item(const Item *item, Text *out) {
    if (item->is_text) text_printf(out, "'%s'", item->s);
    else text_printf(out, "%ld", item->n);
}

static void print_value(const Value *v, Text *out) {
    if (v->kind == ONE) {
        print_item(v->items, out);
        return;
    }
    text_puts(out, v->kind == LIST ? "[" : "{");
    for (int i = 0; i < v->count; i++) {
        if (i) text_puts(out, v->kind == PAIRS && i % 2 ? ": " : ", ");
        print_item(&v->items[i], out);
    }
    text_puts(out, v->kind == LIST ? "]" : "}");
}

// As Python does: rounded down, with the divisor's sign.
static long divided(long a, long b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static long rest(long a, long b) { return a - b * divided(a, b); }

static bool is_prime(long n) {
    for (long d = 2; d * d <= n; d++)
        if (n % d == 0) return false;
    return n > 1;
}

static long common_divisor(long a, long b) {
    while (b) {
        const long t = a % b;
        a = b;
        b = t;
    }
    return labs(a);
}

// What Python would raise for, or what grows too large to print, fails. k is the second argument.
static bool change_number(const char *name, long n, long k, long *out) {
    long a = 0, b = 1;
    if (strcmp(name, "same") == 0) *out = n;
    else if (strcmp(name, "plus") == 0) *out = n + k;
    else if (strcmp(name, "minus") == 0) *out = n - k;
    else if (strcmp(name, "times") == 0) *out = n * k;
    else if (strcmp(name, "over") == 0 && k) *out = divided(n, k);
    else if (strcmp(name, "rest") == 0 && k) *out = rest(n, k);
    else if (strcmp(name, "square") == 0) *out = n * n;
    else if (strcmp(name, "cube") == 0) *out = n * n * n;
    else if (strcmp(name, "negate") == 0) *out = -n;
    else if (strcmp(name, "abs") == 0) *out = labs(n);
    else if (strcmp(name, "most") == 0) *out = n < k ? n : k;
    else if (strcmp(name, "least") == 0) *out = n > k ? n : k;
    else if (strcmp(name, "distance") == 0) *out = labs(n - k);
    else if (strcmp(name, "gcd") == 0) *out = common_divisor(n, k);
    else if (strcmp(name, "lcm") == 0 && n > 0 && k > 0) *out = n / common_divisor(n, k) * k;
    else if (strcmp(name, "power") == 0 && k >= 0 && k < 12) {
        for (*out = 1; k > 0; k--) *out *= n;
    } else if (strcmp(name, "digits") == 0 && n >= 0) {
        for (*out = 0; n; n /= 10) *out += n % 10;
    } else if (strcmp(name, "figures") == 0 && n > 0) {
        for (*out = 0; n; n /= 10) ++*out;
    } else if (strcmp(name, "backwards") == 0 && n >= 0) {
        for (*out = 0; n; n /= 10) *out = *out * 10 + n % 10;
    } else if (strcmp(name, "factorial") == 0 && n >= 0 && n < 13) {
        for (*out = 1; n > 1; n--) *out *= n;
    } else if (strcmp(name, "fibonacci") == 0 && n >= 0 && n < 40) {
        for (; n > 0; n--) {
            const long t = a + b;
            a = b;
            b = t;
        }
        *out = a;
    } else if (strcmp(name, "upto") == 0 && n >= 0) *out = n * (n + 1) / 2;
    else if (strcmp(name, "divisors") == 0 && n > 0) {
        for (*out = 0, b = 1; b <= n; b++) *out += n % b == 0;
    } else if (strcmp(name, "parts") == 0 && n > 0) {
        for (*out = 0, b = 1; b < n; b++) *out += n % b == 0 ? b : 0;
    } else if (strcmp(name, "collatz") == 0 && n > 0) {
        for (*out = 0; n != 1; ++*out) n = n % 2 ? 3 * n + 1 : n / 2;
    } else if (strcmp(name, "root") == 0 && n >= 0) {
        for (*out = 0; (*out + 1) * (*out + 1) <= n;) ++*out;
    } else return false;
    return labs(*out) < 1000000000;
}

static bool is_vowel(char c) { return c && strchr("aeiouAEIOU", c); }

static bool change_text(const char *name, const Item *item, const Item *k, Item *out) {
    const size_t n = strlen(item->s);
    *out = *item;
    if (strcmp(name, "same") == 0) return true;
    if (strcmp(name, "len") == 0) {
        *out = (Item){.n = (long)n};
        return true;
    }
    if (strcmp(name, "upper") == 0)
        for (size_t i = 0; i < n; i++) out->s[i] = (char)toupper((unsigned char)out->s[i]);
    else if (strcmp(name, "lower") == 0)
        for (size_t i = 0; i < n; i++) out->s[i] = (char)tolower((unsigned char)out->s[i]);
    else if (strcmp(name, "capital") == 0) {
        for (size_t i = 0; i < n; i++) out->s[i] = (char)tolower((unsigned char)out->s[i]);
        out->s[0] = (char)toupper((unsigned char)out->s[0]);
    } else if (strcmp(name, "backwards") == 0)
        for (size_t i = 0; i < n; i++) out->s[i] = item->s[n - 1 - i];
    else if (strcmp(name, "first") == 0 && n) out->s[1] = 0;
    else if (strcmp(name, "last") == 0 && n) *out = (Item){.is_text = true, .s = {item->s[n - 1]}};
    else if (strcmp(name, "twice") == 0 && 2 * n < LETTERS) memcpy(out->s + n, item->s, n + 1);
    else if (strcmp(name, "plus") == 0 && n + strlen(k->s) < LETTERS)
        memcpy(out->s + n, k->s, strlen(k->s) + 1);
    else if (strcmp(name, "vowels") == 0) {
        *out = (Item){0};
        for (size_t i = 0; i < n; i++) out->n += is_vowel(item->s[i]);
    } else if (strcmp(name, "count") == 0) {
        *out = (Item){0};
        for (size_t i = 0; i < n; i++) out->n += item->s[i] == k->s[0];
    } else if (strcmp(name, "without") == 0) {
        char *to = out->s;
        for (size_t i = 0; i < n; i++)
            if (item->s[i] != k->s[0]) *to++ = item->s[i];
        *to = 0;
    } else if (strcmp(name, "part") == 0 && k->n >= 0) {
        if ((size_t)k->n < n) out->s[k->n] = 0;
    } else return false;
    return true;
}

static bool change(const char *name, const Item *item, const Item *k, Item *out) {
    if (item->is_text) return change_text(name, item, k, out);
    *out = (Item){0};
    return change_number(name, item->n, k->n, &out->n);
}

static bool test_number(const char *name, long n, long k, bool *out) {
    long root;
    if (strcmp(name, "even") == 0) *out = n % 2 == 0;
    else if (strcmp(name, "odd") == 0) *out = n % 2 != 0;
    else if (strcmp(name, "positive") == 0) *out = n > 0;
    else if (strcmp(name, "negative") == 0) *out = n < 0;
    else if (strcmp(name, "above") == 0) *out = n > k;
    else if (strcmp(name, "below") == 0) *out = n < k;
    else if (strcmp(name, "equal") == 0) *out = n == k;
    else if (strcmp(name, "other") == 0) *out = n != k;
    else if (strcmp(name, "multiple") == 0 && k) *out = n % k == 0;
    else if (strcmp(name, "prime") == 0) *out = is_prime(n);
    else if (strcmp(name, "square") == 0 && change_number("root", n, 0, &root)) *out = root * root == n;
    else if (strcmp(name, "figures") == 0) *out = labs(n) >= 10 && labs(n) <= 99;
    else return false;
    return true;
}

static bool test_text(const char *name, const char *s, const Item *k, bool *out) {
    const size_t n = strlen(s), m = strlen(k->s);
    if (strcmp(name, "longer") == 0) *out = (long)n > k->n;
    else if (strcmp(name, "shorter") == 0) *out = (long)n < k->n;
    else if (strcmp(name, "length") == 0) *out = (long)n == k->n;
    else if (strcmp(name, "starts") == 0) *out = strncmp(s, k->s, m) == 0;
    else if (strcmp(name, "ends") == 0) *out = n >= m && strcmp(s + n - m, k->s) == 0;
    else if (strcmp(name, "holds") == 0) *out = strstr(s, k->s) != NULL;
    else if (strcmp(name, "lacks") == 0) *out = strstr(s, k->s) == NULL;
    else if (strcmp(name, "other") == 0) *out = strcmp(s, k->s) != 0;
    else if (strcmp(name, "vowel") == 0) *out = is_vowel(*s);
    else if (strcmp(name, "consonant") == 0) *out = isalpha((unsigned char)*s) && !is_vowel(*s);
    else if (strcmp(name, "digit") == 0) *out = isdigit((unsigned char)*s) != 0;
    else if (strcmp(name, "letter") == 0) *out = isalpha((unsigned char)*s) != 0;
    else if (strcmp(name, "upper") == 0) *out = isupper((unsigned char)*s) != 0;
    else if (strcmp(name, "lower") == 0) *out = islower((unsigned char)*s) != 0;
    else if (strcmp(name, "palindrome") == 0) {
        *out = true;
        for (size_t i = 0; i < n; i++) *out = *out && s[i] == s[n - 1 - i];
    } else return false;
    return true;
}

static bool test(const char *name, const Item *item, const Item *k, bool *out) {
    return item->is_text ? test_text(name, item->s, k, out) : test_number(name, item->n, k->n, out);
}

static int compare(const void *a, const void *b) {
    const Item *x = a, *y = b;
    return x->is_text ? strcmp(x->s, y->s) : (x->n > y->n) - (x->n < y->n);
}

static void reverse(Value *v) {
    for (int i = 0, j = v->count - 1; i < j; i++, j--) {
        const Item t = v->items[i];
        v->items[i] = v->items[j];
        v->items[j] = t;
    }
}

static bool one(Value *v, Item item) {
    *v = (Value){.kind = ONE, .count = 1};
    v->items[0] = item;
    return true;
}

static bool add_up(Value *v, bool multiply) {
    Item all = {.n = multiply};
    for (int i = 0; i < v->count; i++) all.n = multiply ? all.n * v->items[i].n : all.n + v->items[i].n;
    return labs(all.n) < 1000000000 && one(v, all);
}

static bool join(Value *v, const Item *between) {
    Text t = {0};
    for (int i = 0; i < v->count; i++) {
        if (i) text_puts(&t, between->s);
        text_puts(&t, v->items[i].s);
    }
    Item all = {.is_text = true};
    const bool ok = t.length < LETTERS;
    if (ok) memcpy(all.s, text_get(&t), t.length + 1);
    text_release(&t);
    return ok && one(v, all);
}

static void unique(Value *v) {
    int kept = 0;
    for (int i = 0; i < v->count; i++) {
        int k = 0;
        while (k < kept && compare(&v->items[k], &v->items[i]) != 0) k++;
        if (k == kept) v->items[kept++] = v->items[i];
    }
    v->count = kept;
}

// How often each item is there, in the order of first sight.
static bool tally(Value *v) {
    Value pairs = {.kind = PAIRS};
    for (int i = 0; i < v->count; i++) {
        int k = 0;
        while (k < pairs.count && compare(&pairs.items[k], &v->items[i]) != 0) k += 2;
        if (k == pairs.count) {
            if (pairs.count + 2 > ITEMS) return false;
            pairs.items[k] = v->items[i];
            pairs.items[k + 1] = (Item){0};
            pairs.count += 2;
        }
        pairs.items[k + 1].n++;
    }
    *v = pairs;
    return true;
}

// What makes one value, or another order, of a list.
static bool fold(const char *name, Value *v, const Item *k) {
    if (strcmp(name, "len") == 0) return one(v, (Item){.n = v->count});
    if (strcmp(name, "sum") == 0) return add_up(v, false);
    if (strcmp(name, "product") == 0) return add_up(v, true);
    if (strcmp(name, "join") == 0) return join(v, k);
    if (strcmp(name, "tally") == 0) return tally(v);
    if (strcmp(name, "same") == 0) return true;
    if (strcmp(name, "reverse") == 0) reverse(v);
    else if (strcmp(name, "unique") == 0) unique(v);
    else if (strcmp(name, "take") == 0) v->count = (int)(k->n < v->count ? k->n : v->count);
    else if (strcmp(name, "sort") == 0 || strcmp(name, "fall") == 0) {
        qsort(v->items, (size_t)v->count, sizeof *v->items, compare);
        if (*name == 'f') reverse(v);
    } else if (strcmp(name, "running") == 0) {
        for (int i = 1; i < v->count; i++) v->items[i].n += v->items[i - 1].n;
    } else if (strcmp(name, "steps") == 0) {
        for (int i = 0; i + 1 < v->count; i++) v->items[i].n = v->items[i + 1].n - v->items[i].n;
        v->count -= v->count > 0;
    } else if (v->count == 0) return false;
    else if (strcmp(name, "first") == 0) return one(v, v->items[0]);
    else if (strcmp(name, "last") == 0) return one(v, v->items[v->count - 1]);
    else if (strcmp(name, "max") == 0 || strcmp(name, "min") == 0) {
        qsort(v->items, (size_t)v->count, sizeof *v->items, compare);
        return one(v, v->items[name[1] == 'a' ? v->count - 1 : 0]);
    } else if (strcmp(name, "range") == 0) {
        qsort(v->items, (size_t)v->count, sizeof *v->items, compare);
        return one(v, (Item){.n = v->items[v->count - 1].n - v->items[0].n});
    } else return false;
    return true;
}

// One text of the items, with another one in place of those that pass.
static bool mask(const char *name, Value *v, const Item *k, const char *other) {
    Item item;
    bool passes;
    if (!read_item(other, &item)) return false;
    for (int i = 0; i < v->count; i++) {
        if (!test(name, &v->items[i], k, &passes)) return false;
        if (passes) v->items[i] = item;
    }
    return join(v, &(Item){.is_text = true});
}

static bool draw(const char *const *words, int n, Random *r, Text *out) {
    Value v = {.kind = LIST, .count = n > 3 ? (int)strtol(words[1], NULL, 10) : -1};
    if (v.count < 0 || v.count > ITEMS) return false;
    const long low = strtol(words[2], NULL, 10), high = strtol(words[3], NULL, 10);
    for (int i = 0; i < v.count; i++) v.items[i].n = low + (long)random_below(r, (uint32_t)(high - low + 1));
    print_value(&v, out);
    return true;
}

static bool count_up(const char *const *words, int n, Text *out) {
    Value v = {.kind = LIST};
    const long low = strtol(words[1], NULL, 10), high = strtol(words[n > 2 ? 2 : 1], NULL, 10);
    for (long i = low; i <= high && v.count < ITEMS; i++) v.items[v.count++].n = i;
    print_value(&v, out);
    return true;
}

// Of two lists, what `name` makes of each pair.
static bool pairs(const char *const *words, Text *out) {
    Value a, b;
    if (!read_value(words[2], &a) || !read_value(words[3], &b) || a.count != b.count) return false;
    for (int i = 0; i < a.count; i++)
        if (!change_number(words[1], a.items[i].n, b.items[i].n, &a.items[i].n)) return false;
    print_value(&a, out);
    return true;
}

bool lists_apply(const char *const *words, int n, Random *r, Text *out) {
    const char *name = words[0];
    if (strcmp(name, "numbers") == 0) return draw(words, n, r, out);
    if (strcmp(name, "count") == 0 && n > 2) return count_up(words, n, out);
    if (strcmp(name, "pairs") == 0) return n > 3 && pairs(words, out);
    const bool named = strcmp(name, "keep") == 0 || strcmp(name, "drop") == 0 || strcmp(name, "map") == 0 ||
                       strcmp(name, "item") == 0 || strcmp(name, "test") == 0 || strcmp(name, "mask") == 0;
    Value v;
    Item k = {0};
    bool passes;
    if (n < 2 + named || !read_value(words[1 + named], &v)) return false;
    if (n > 2 + named && !read_item(words[2 + named], &k)) return false;
    if (strcmp(name, "test") == 0) {
        if (!test(words[1], v.items, &k, &passes)) return false;
        text_puts(out, passes ? "True" : "False");
        return true;
    }
    if (strcmp(name, "item") == 0) {
        Item changed;
        if (!change(words[1], v.items, &k, &changed)) return false;
        print_item(&changed, out);
        return true;
    }
    take_apart(&v);
    if (strcmp(name, "mask") == 0) {
        if (n < 5 || !mask(words[1], &v, &k, words[4])) return false;
        print_value(&v, out);
        return true;
    }
    int kept = 0;
    for (int i = 0; named && i < v.count; i++) {
        Item item = v.items[i];
        if (*name == 'm') {
            if (!change(words[1], &v.items[i], &k, &item)) return false;
        } else {
            if (!test(words[1], &item, &k, &passes)) return false;
            if (passes == (*name == 'd')) continue;
        }
        v.items[kept++] = item;
    }
    if (named) v.count = kept;
    else if (!fold(name, &v, &k)) return false;
    print_value(&v, out);
    return true;
}
