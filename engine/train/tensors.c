// The writer of safetensors files. A file is built in memory as a whole, and output.h gives it its name when
// it is complete. Its data begins on a cache line (safetensors.h).
#include "engine/train/tensors.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/safetensors.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static void header_text(const TensorOut *tensors, size_t count, Text *t) {
    size_t at = 0;
    text_puts(t, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < count; i++) {
        const TensorOut *x = &tensors[i];
        text_printf(t, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", x->name, x->dtype);
        if (x->rows) text_printf(t, "%zu,", x->rows);
        text_printf(t, "%zu],\"data_offsets\":[%zu,%zu]}", x->columns, at, at + x->bytes);
        at += x->bytes;
    }
    text_puts(t, "}");
    for (size_t n = safetensors_padding(t->length); n > 0; n--) text_puts(t, " ");
}

bool tensors_add(Output *out, const char *path, const TensorOut *tensors, size_t count, Error *e) {
    Text header = {0};
    header_text(tensors, count, &header);
    size_t at = SAFETENSORS_PREFIX + header.length, bytes = at;
    assert(at % SAFETENSORS_ALIGN == 0);
    for (size_t i = 0; i < count; i++) bytes += tensors[i].bytes;
    unsigned char *file = mem_try(bytes, 1);
    if (file) {
        for (int i = 0; i < SAFETENSORS_PREFIX; i++)
            file[i] = (unsigned char)((uint64_t)header.length >> 8 * i);
        memcpy(file + SAFETENSORS_PREFIX, header.data, header.length);
        for (size_t i = 0; i < count; at += tensors[i++].bytes)
            memcpy(file + at, tensors[i].data, tensors[i].bytes);
    }
    bool ok = file ? output_add(out, path, &(OutputKind){0}, file, bytes, e)
                   : error_system(e, "out of memory writing '%s'", path);
    text_release(&header);
    mem_free(file);
    return ok;
}

bool tensors_write(const char *path, const TensorOut *tensors, size_t count, Error *e) {
    Output out = {0};
    bool ok = tensors_add(&out, path, tensors, count, e) && output_finish(&out, e);
    output_release(&out);
    return ok;
}
