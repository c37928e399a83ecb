#include "tests/support/spoil.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 1024, PREFIX = 8 };
static const char WEIGHTS[] = "model.safetensors";

static void join(char out[PATH_SIZE], const char *dir, const char *name) {
    if (snprintf(out, PATH_SIZE, "%s/%s", dir, name) >= PATH_SIZE) fail_msg("'%s/%s' is too long", dir, name);
}

static long long number(const char *s) { return strtoll(s, NULL, 0); }

void spoil_replace(const char *dir, const char *a, const char *b) { scratch_write(dir, a, b, strlen(b)); }

void spoil_append(const char *dir, const char *a, const char *b) {
    char path[PATH_SIZE];
    join(path, dir, a);
    FILE *f = fopen(path, "ab");
    assert_true(f && fputs(b, f) >= 0 && fclose(f) == 0);
}

void spoil_remove(const char *dir, const char *a, const char *b) {
    (void)b;
    char path[PATH_SIZE];
    join(path, dir, a);
    assert_int_equal(unlink(path), 0);
}

void spoil_cut(const char *dir, const char *a, const char *b) {
    char path[PATH_SIZE];
    struct stat st;
    join(path, dir, a);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, number(b) < 0 ? st.st_size + number(b) : number(b)), 0);
}

void spoil_folder(const char *dir, const char *a, const char *b) {
    char path[PATH_SIZE];
    join(path, dir, a);
    spoil_remove(dir, a, b);
    assert_int_equal(mkdir(path, 0777), 0);
}

void spoil_fifo(const char *dir, const char *a, const char *b) {
    char path[PATH_SIZE];
    join(path, dir, a);
    spoil_remove(dir, a, b);
    assert_int_equal(mkfifo(path, 0666), 0);
}

void spoil_loop(const char *dir, const char *a, const char *b) {
    char path[PATH_SIZE];
    join(path, dir, a);
    spoil_remove(dir, a, b);
    assert_int_equal(symlink(a, path), 0);
}

void spoil_copy(const char *dir, const char *a, const char *b) {
    size_t n;
    char *bytes = scratch_read(dir, a, &n);
    scratch_write(dir, b, bytes, n);
    mem_free(bytes);
}

void spoil_swap(const char *dir, const char *a, const char *b) {
    size_t n;
    char *bytes = scratch_read(dir, a, &n);
    spoil_copy(dir, b, a);
    scratch_write(dir, b, bytes, n);
    mem_free(bytes);
}

static void write_repeated(const char *dir, const char *name, const char *start, const char *piece,
                           size_t count, const char *end) {
    Text t = {0};
    text_puts(&t, start);
    for (size_t i = 0; i < count; i++) text_puts(&t, piece);
    text_puts(&t, end);
    scratch_write(dir, name, text_get(&t), t.length);
    text_release(&t);
}

void spoil_deep(const char *dir, const char *a, const char *b) {
    write_repeated(dir, a, "", "[", (size_t)number(b), "");
}

void spoil_objects(const char *dir, const char *a, const char *b) {
    write_repeated(dir, a, "{\"\":[{}", ",{}", (size_t)number(b) * 1024 / 3, "]}");
}

// The value under a key of an object, or at a place in an array.
static json_t *child(json_t *v, const char *key) {
    return json_is_array(v) ? json_array_get(v, (size_t)number(key)) : json_object_get(v, key);
}

static void put(json_t *holder, const char *key, const char *value) {
    json_t *v = *value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    if (*value && !v) fail_msg("not JSON: %s", value);
    int wrong = !v                                               ? json_object_del(holder, key)
                : json_is_array(holder) && strcmp(key, "-") == 0 ? json_array_append_new(holder, v)
                : json_is_array(holder) ? json_array_set_new(holder, (size_t)number(key), v)
                                        : json_object_set_new(holder, key, v);
    if (wrong) fail_msg("cannot set '%s' to %s", key, value);
}

void spoil_json(const char *dir, const char *a, const char *b) {
    char path[PATH_SIZE], *rest = path;
    snprintf(path, sizeof path, "%s", a);
    const char *file = strsep(&rest, "/");
    json_t *root = scratch_json(dir, file), *at = root;
    for (const char *key = strsep(&rest, "/"); key; key = strsep(&rest, "/")) {
        if (!rest) put(at, key, b);
        else if (!(at = child(at, key))) fail_msg("there is no '%s' in %s", key, a);
    }
    scratch_write_json(dir, file, root);
    json_decref(root);
}

typedef struct {
    char *bytes; // the file
    size_t size, header;
} Weights;

static Weights read_weights(const char *dir) {
    Weights w;
    w.bytes = scratch_read(dir, WEIGHTS, &w.size);
    w.header = 0;
    for (int i = PREFIX - 1; i >= 0; i--) w.header = w.header << 8 | (unsigned char)w.bytes[i];
    return w;
}

static void write_weights(const char *dir, const Weights *w, const char *header) {
    scratch_write_safetensors(dir, WEIGHTS, header, w->bytes + PREFIX + w->header,
                              w->size - PREFIX - w->header);
}

void spoil_header(const char *dir, const char *a, const char *b) {
    Weights w = read_weights(dir);
    Text t = {0};
    char *header = mem_text(w.bytes + PREFIX, w.header), *at = strstr(header, a);
    if (!at) fail_msg("'%s' is not in the header", a);
    text_add(&t, header, (size_t)(at - header));
    text_puts(&t, b);
    text_puts(&t, at + strlen(a));
    write_weights(dir, &w, text_get(&t));
    text_release(&t);
    mem_free(header);
    mem_free(w.bytes);
}

void spoil_header_whole(const char *dir, const char *a, const char *b) {
    (void)b;
    Weights w = read_weights(dir);
    write_weights(dir, &w, a);
    mem_free(w.bytes);
}

void spoil_length(const char *dir, const char *a, const char *b) {
    (void)b;
    Weights w = read_weights(dir);
    uint64_t length = strtoull(a, NULL, 0);
    for (int i = 0; i < PREFIX; i++) w.bytes[i] = (char)(length >> 8 * i);
    scratch_write(dir, WEIGHTS, w.bytes, w.size);
    mem_free(w.bytes);
}

void spoil_big_header(const char *dir, const char *a, const char *b) {
    (void)b;
    Text t = {0};
    size_t most = (size_t)number(a) << 20;
    text_puts(&t, "{\"-\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}");
    for (int i = 0; t.length + 80 < most; i++)
        text_printf(&t, ",\"%d\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}", i);
    while (t.length + 1 < most) text_puts(&t, " ");
    text_puts(&t, "}");
    scratch_write_safetensors(dir, WEIGHTS, text_get(&t), "", 0);
    text_release(&t);
}

static void put_in_tensor(const char *dir, const char *tensor, size_t at, const void *bytes, size_t n) {
    Weights w = read_weights(dir);
    Safetensors s;
    assert_true(safetensors_parse((const unsigned char *)w.bytes, w.size, WEIGHTS, &s, NULL));
    const StoredTensor *t = safetensors_find(&s, tensor);
    assert_true(t && at + n <= t->end - t->begin);
    memcpy(w.bytes + t->begin + at, bytes, n);
    scratch_write(dir, WEIGHTS, w.bytes, w.size);
    safetensors_release(&s);
    mem_free(w.bytes);
}

void spoil_weight(const char *dir, const char *a, const char *b) {
    put_in_tensor(dir, a, 2 * (size_t)number(b), "\xc0\x7f", 2);
}

void spoil_bytes(const char *dir, const char *a, const char *b) {
    unsigned char bytes[16];
    size_t n = 0;
    const char *hex = strchr(b, ':');
    assert_non_null(hex);
    for (hex++; *hex; hex += 2, n++) {
        const char byte[] = {hex[0], hex[1], 0};
        assert_true(n < sizeof bytes && hex[1]);
        bytes[n] = (unsigned char)strtoul(byte, NULL, 16);
    }
    put_in_tensor(dir, a, (size_t)number(b), bytes, n);
}
