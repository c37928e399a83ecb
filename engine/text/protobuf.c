#include "engine/text/protobuf.h"

#include <string.h>

static bool read_varint(Proto *p, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 64 && p->at < p->end; shift += 7) {
        unsigned char byte = *p->at++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool read_fixed(Proto *p, size_t n, uint64_t *out) {
    if (proto_size(p) < n) return false;
    *out = 0;
    for (size_t i = 0; i < n; i++) *out |= (uint64_t)p->at[i] << 8 * i;
    p->at += n;
    return true;
}

static bool read_bytes(Proto *p, Proto *out) {
    uint64_t length;
    if (!read_varint(p, &length) || length > proto_size(p)) return false;
    *out = (Proto){p->at, p->at + length};
    p->at += length;
    return true;
}

bool proto_next(Proto *p, ProtoField *field, bool *more) {
    uint64_t key;
    *more = p->at < p->end;
    if (!*more) return true;
    if (!read_varint(p, &key) || key >> 3 == 0 || key >> 32) return false;
    *field = (ProtoField){.number = (uint32_t)(key >> 3), .wire = (WireType)(key & 7)};
    switch (field->wire) {
    case WIRE_VARINT: return read_varint(p, &field->value);
    case WIRE_FIXED64: return read_fixed(p, 8, &field->value);
    case WIRE_FIXED32: return read_fixed(p, 4, &field->value);
    case WIRE_BYTES: return read_bytes(p, &field->bytes);
    }
    return false;
}

float proto_float(const ProtoField *field) {
    uint32_t bits = (uint32_t)field->value;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
