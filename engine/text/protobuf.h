// Protocol buffers, read field by field. Every length is checked against the bytes that are there.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Proto {
    const unsigned char *at, *end;
} Proto;

typedef enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } WireType;

typedef struct ProtoField {
    uint32_t number;
    WireType wire;
    uint64_t value; // VARINT, FIXED32, FIXED64
    Proto bytes;    // BYTES: a string or a message
} ProtoField;

// The next field; *more is false at the end. False if the bytes are no protocol buffer.
bool proto_next(Proto *p, ProtoField *field, bool *more);

static inline size_t proto_size(const Proto *p) { return (size_t)(p->end - p->at); }
float proto_float(const ProtoField *field); // of FIXED32
