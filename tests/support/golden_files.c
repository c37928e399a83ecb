// The golden models as they are in the tree (tests/fixtures/golden, less than two thirds of the bytes) and as
// tests open them (build/golden). Random weights of a seed are in many models, in other places: zstd packs a
// model's tensors over those of BASES, which stay as they are. Logits share nothing, but their exponents do:
// their bytes are sorted by their place in a number.
#include "tests/support/packed.h"
#include "tests/support/scratch.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const BASES[] = {"mixtral", "qwen2-moe"};
enum { BASE_COUNT = sizeof BASES / sizeof *BASES };

static bool is_base(const char *name) {
    for (int i = 0; i < BASE_COUNT; i++)
        if (strcmp(name, BASES[i]) == 0) return true;
    return false;
}

// Byte b of number i to place b * count + i, or back.
static void sort_bytes(char *bytes, size_t size, bool back) {
    size_t count = size / sizeof(float);
    char *sorted = mem_new(size, 1);
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < sizeof(float); b++) {
            size_t plain = i * sizeof(float) + b, place = b * count + i;
            sorted[back ? plain : place] = bytes[back ? place : plain];
        }
    memcpy(bytes, sorted, count * sizeof(float));
    mem_free(sorted);
}

static void unpack_file(const char *from, const char *to, const char *name, const Text *bases) {
    static const Text nothing;
    bool logits = text_ends(name, ".f32.zst"), packed = text_ends(name, ".zst");
    size_t size;
    char *bytes =
        packed ? packed_read(from, name, logits ? &nothing : bases, &size) : scratch_read(from, name, &size);
    char *own = mem_text(name, strlen(name) - (packed ? strlen(".zst") : 0));
    if (logits) sort_bytes(bytes, size, true);
    scratch_write(to, own, bytes, size);
    mem_free(own);
    mem_free(bytes);
}

static void pack_file(const char *from, const char *to, const char *name, const Text *bases, bool is_plain) {
    static const Text nothing;
    bool logits = text_ends(name, ".f32"), tensors = text_ends(name, ".safetensors") && !is_plain;
    size_t size;
    char *bytes = scratch_read(from, name, &size), *packed = mem_printf("%s.zst", name);
    if (logits) sort_bytes(bytes, size, false);
    if (logits || tensors) packed_write(to, packed, logits ? &nothing : bases, bytes, size);
    else scratch_write(to, name, bytes, size);
    mem_free(packed);
    mem_free(bytes);
}

static void convert(const char *from, const char *to, const char *model, bool unpack, const Text *bases) {
    Error e = {0};
    char *in = file_path(from, model), *out = file_path(to, model);
    DIR *d = opendir(in);
    if (!d || !file_make_directory(out, &e)) {
        fprintf(stderr, "golden: cannot copy '%s' to '%s': %s\n", in, out, e.text);
        exit(1);
    }
    for (struct dirent *f; (f = readdir(d));) {
        if (f->d_name[0] == '.') continue;
        if (unpack) unpack_file(in, out, f->d_name, bases);
        else pack_file(in, out, f->d_name, bases, is_base(model));
    }
    closedir(d);
    mem_free(in);
    mem_free(out);
}

int golden_files(int argc, char **argv) {
    bool unpack = argc == 4 && strcmp(argv[1], "unpack") == 0;
    DIR *d = unpack || (argc == 4 && strcmp(argv[1], "pack") == 0) ? opendir(argv[2]) : NULL;
    if (!d) {
        fputs("usage: golden unpack | pack FROM TO\n", stderr);
        return 2;
    }
    Text bases = {0};
    for (int i = 0; i < BASE_COUNT; i++) {
        char *dir = file_path(argv[2], BASES[i]);
        packed_add_tensors(&bases, dir);
        mem_free(dir);
    }
    for (struct dirent *f; (f = readdir(d));)
        if (f->d_name[0] != '.') convert(argv[2], argv[3], f->d_name, unpack, &bases);
    closedir(d);
    text_release(&bases);
    return 0;
}
