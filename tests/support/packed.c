#include "tests/support/packed.h"

#include "tests/support/scratch.h"

#include "engine/base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

enum { LEVEL = 19 };

static void demand(size_t code, const char *what, const char *dir, const char *name) {
    if (!ZSTD_isError(code)) return;
    fprintf(stderr, "packed: cannot %s '%s/%s': %s\n", what, dir, name, ZSTD_getErrorName(code));
    abort();
}

char *packed_read(const char *dir, const char *name, const Text *prefix, size_t *size) {
    size_t packed_size;
    char *packed = scratch_read(dir, name, &packed_size);
    *size = (size_t)ZSTD_getFrameContentSize(packed, packed_size);
    demand(*size, "read", dir, name);
    char *bytes = mem_new(*size + 1, 1);
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_DCtx_refPrefix(z, prefix->data, prefix->length);
    demand(ZSTD_decompressDCtx(z, bytes, *size, packed, packed_size), "unpack", dir, name);
    ZSTD_freeDCtx(z);
    mem_free(packed);
    return bytes;
}

void packed_write(const char *dir, const char *name, const Text *prefix, const char *bytes, size_t size) {
    size_t most = ZSTD_compressBound(size);
    char *packed = mem_new(most, 1);
    ZSTD_CCtx *z = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_refPrefix(z, prefix->data, prefix->length);
    size_t packed_size = ZSTD_compress2(z, packed, most, bytes, size);
    demand(packed_size, "pack", dir, name);
    scratch_write(dir, name, packed, packed_size);
    ZSTD_freeCCtx(z);
    mem_free(packed);
}

void packed_add_tensors(Text *prefix, const char *dir) {
    struct dirent **files;
    int count = scandir(dir, &files, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (text_ends(files[i]->d_name, ".safetensors")) {
            size_t size;
            char *bytes = scratch_read(dir, files[i]->d_name, &size);
            text_add(prefix, bytes, size);
            mem_free(bytes);
        }
        free(files[i]);
    }
    free(files);
}
