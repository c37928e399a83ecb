// Growing texts, and measured numbers. Invariant: data is NULL, or data[length] is NUL and length < capacity.
#include "engine/base/text.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void text_check(const Text *t) {
    assert(t->data ? t->length < t->capacity && t->data[t->length] == 0 : t->length == 0 && t->capacity == 0);
}

static void reserve(Text *t, size_t more) {
    size_t need;
    if (more < t->capacity - t->length) return;
    if (!size_add(t->length + 1, more, &need)) mem_exhausted(SIZE_MAX);
    mem_grow(&t->data, &t->capacity, need, 1);
}

void text_add(Text *t, const char *bytes, size_t n) {
    reserve(t, n);
    if (n) memcpy(t->data + t->length, bytes, n);
    t->length += n;
    t->data[t->length] = 0;
    text_check(t);
}

void text_puts(Text *t, const char *s) { text_add(t, s, strlen(s)); }

void text_vprintf(Text *t, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    assert(n >= 0); // our formats have no wide characters
    reserve(t, (size_t)n);
    vsnprintf(t->data + t->length, (size_t)n + 1, format, again);
    t->length += (size_t)n;
    text_check(t);
    va_end(again);
}

void text_printf(Text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_vprintf(t, format, args);
    va_end(args);
}

void text_csv(Text *t, const char *field) {
    bool quoted = field[strcspn(field, "\",\r\n")] != 0;
    text_puts(t, quoted ? "\"" : "");
    for (; *field; field++) text_add(t, *field == '"' ? "\"\"" : field, *field == '"' ? 2 : 1);
    text_puts(t, quoted ? "\"" : "");
}

void text_clear(Text *t) {
    t->length = 0;
    if (t->data) t->data[0] = 0;
    text_check(t);
}

void text_release(Text *t) {
    mem_free(t->data);
    *t = (Text){0};
}

// Decimals of the last digit worth printing; negative if it counts tens or more.
static int known_decimals(double value, double low, double high) {
    enum { LEAST = 3, MOST = 9 };
    double unit = (high - low) / 2 / 3.55; // as the Particle Data Group rounds
    double size = fabs(value);
    int three = size > 0 ? 2 - (int)floor(log10(size)) : 0, most = three > LEAST ? three : LEAST;
    int decimals = !isfinite(unit) ? three : unit > 0 ? (int)ceil(-log10(unit)) : most;
    if (!isfinite(unit) && decimals < 0) decimals = 0;
    if (decimals > most) decimals = most;
    if (size > 0 && decimals < three - 2) decimals = three - 2; // keep a digit, however wide the interval
    return decimals < MOST ? decimals : MOST;
}

static const char *with_decimals(char out[MEASURED_SIZE], double value, int decimals) {
    if (!isfinite(value)) snprintf(out, MEASURED_SIZE, "-");
    else if (fabs(value) >= 1e15) snprintf(out, MEASURED_SIZE, "%.3g", value);
    else if (decimals >= 0) snprintf(out, MEASURED_SIZE, "%.*f", decimals, value);
    else snprintf(out, MEASURED_SIZE, "%.0f", pow(10, -decimals) * nearbyint(value / pow(10, -decimals)));
    return out;
}

const char *measured_text(char out[MEASURED_SIZE], double value, double low, double high) {
    return with_decimals(out, value, known_decimals(value, low, high));
}

void text_reach(Text *t, double value, double low, double high) {
    char number[MEASURED_SIZE];
    int decimals = known_decimals(value, low, high);
    if (!isfinite(value) || !isfinite(low) || !isfinite(high)) return;
    text_printf(t, "[%s", with_decimals(number, low, decimals));
    text_printf(t, ", %s]", with_decimals(number, high, decimals));
}

void text_measured(Text *t, double value, double low, double high) {
    char number[MEASURED_SIZE];
    if (!isfinite(value)) return;
    text_puts(t, measured_text(number, value, low, high));
    if (isfinite(low) && isfinite(high)) text_puts(t, " ");
    text_reach(t, value, low, high);
}

const char *text_get(const Text *t) { return t->data ? t->data : ""; }

bool text_ends(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

int text_among(const char *text, const char *const *words, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], text) == 0) return i;
    return -1;
}
