#include "engine/train/tensors.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/safetensors.h"

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
    size_t bytes = 8, at;
    header_text(tensors, count, &header);
    bytes += header.length;
    for (size_t i = 0; i < count; i++) bytes += tensors[i].bytes;
    unsigned char *file = header.failed ? NULL : mem_alloc(bytes, 1);
    if (!file) {
        text_release(&header);
        return error_system(e, "out of memory writing '%s'", path);
    }
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)header.length >> 8 * i);
    memcpy(file + 8, header.data, header.length);
    at = 8 + header.length;
    for (size_t i = 0; i < count; at += tensors[i++].bytes)
        memcpy(file + at, tensors[i].data, tensors[i].bytes);
    text_release(&header);
    bool ok = output_add(out, path, &(OutputKind){0}, file, bytes, e);
    mem_free(file);
    return ok;
}

bool tensors_write(const char *path, const TensorOut *tensors, size_t count, Error *e) {
    Output out = {0};
    bool ok = tensors_add(&out, path, tensors, count, e) && output_finish(&out, e);
    output_release(&out);
    return ok;
}
