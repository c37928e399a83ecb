// The normalizers: each changes the whole text, which is still one word.
#include "engine/text/stage.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/text/utf8.h"

#include <utf8proc.h>

// --- NFC, NFD, NFKC, NFKD ------------------------------------------------------------------------------

// Normalizes n bytes.
static bool normalize_part(const char *text, size_t n, int form, Text *out, Error *e) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text;
    utf8proc_option_t options = UTF8PROC_STABLE | (utf8proc_option_t)form;
    utf8proc_ssize_t count = utf8proc_decompose(bytes, (utf8proc_ssize_t)n, NULL, 0, options);
    LOCAL_MEMORY utf8proc_int32_t *codes = count < 0 ? NULL : mem_new((size_t)count + 1, sizeof *codes);
    bool ok = codes && utf8proc_decompose(bytes, (utf8proc_ssize_t)n, codes, count, options) == count;
    if (ok) {
        count = utf8proc_reencode(codes, count, options); // in place: UTF-8 needs no more than the codes do
        ok = count >= 0;
    }
    if (ok) text_add(out, (const char *)codes, (size_t)count);
    return ok || error_system(e, "cannot normalize %zu bytes of text", n);
}

// ASCII is normal in every form, and only its last character before a mark can combine. So only the parts
// that aren't ASCII are normalized, each with the one character before it.
static bool run_form(const Step *step, const Words *in, Words *out, Error *e) {
    const char *s = text_get(&in->text);
    size_t n = in->text.length;
    for (size_t i = 0; i < n;) {
        size_t to = i;
        while (to < n && (unsigned char)s[to] < 0x80) to++;
        size_t from = to > i && to < n ? to - 1 : to;
        text_add(&out->text, s + i, from - i);
        while (to < n && (unsigned char)s[to] >= 0x80) to++;
        if (from < to && !normalize_part(s + from, to - from, step->kind->form, &out->text, e)) return false;
        i = to;
    }
    words_end(out);
    return true;
}

// --- Prepend, Replace, Strip ---------------------------------------------------------------------------

static bool read_prepend(Step *s, const json_t *part, const char *place, Error *e) {
    return step_read_text(s, part, "prepend", place, e);
}

static bool run_prepend(const Step *s, const Words *in, Words *out, UNUSED Error *e) {
    if (in->text.length) text_add(&out->text, s->text, s->length);
    words_add(out, text_get(&in->text), in->text.length);
    return true;
}

static bool read_replace(Step *s, const json_t *part, const char *place, Error *e) {
    return step_read_text(s, part, "content", place, e) && step_read_pattern(s, part, place, e);
}

static bool run_replace(const Step *s, const Words *in, Words *out, Error *e) {
    LOCAL(search_close) Search search;
    bool found = true;
    size_t from, to, done = 0;
    search_open(&search, s->pattern);
    search_begin(&search, text_get(&in->text), in->text.length);
    bool ok = in->text.length == 0 || search_next(&search, &found, &from, &to, e);
    for (; ok && found && in->text.length; ok = search_next(&search, &found, &from, &to, e)) {
        text_add(&out->text, in->text.data + done, from - done);
        text_add(&out->text, s->text, s->length);
        done = to;
    }
    words_add(out, text_get(&in->text) + done, in->text.length - done);
    return ok;
}

static bool read_strip(Step *s, const json_t *part, const char *place, Error *e) {
    s->left = s->right = true;
    return field_bool_optional(part, "strip_left", &s->left, place, e) &&
           field_bool_optional(part, "strip_right", &s->right, place, e);
}

static bool run_strip(const Step *s, const Words *in, Words *out, UNUSED Error *e) {
    const char *text = text_get(&in->text);
    size_t from = 0, to = in->text.length;
    if (s->left) from = utf8_space_at_start(text, to);
    if (s->right) to -= utf8_space_at_end(text + from, to - from);
    if (from) out->at_start = false;
    words_add(out, text + from, to - from);
    return true;
}

static const StepKind KINDS[] = {
    {"NFC", NULL, run_form, UTF8PROC_COMPOSE},
    {"NFD", NULL, run_form, UTF8PROC_DECOMPOSE},
    {"NFKC", NULL, run_form, UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", NULL, run_form, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
    {"Prepend", read_prepend, run_prepend, 0},
    {"Replace", read_replace, run_replace, 0},
    {"Strip", read_strip, run_strip, 0},
};

const StepTable step_normalizers = {"normalizer", "normalizers", KINDS, sizeof KINDS / sizeof *KINDS};
