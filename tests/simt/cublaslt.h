// What a test can ask of the library that stands in for cuBLASLt.
#pragma once

enum { FAKE_SLOW, FAKE_UNUSABLE, FAKE_REFUSING, FAKE_FASTEST, FAKE_TOO_LARGE, FAKE_ALGORITHMS };

// Its symbol is `fake_cublas`.
typedef struct FakeCublas {
    int live;                      // handles, operations, layouts and preferences that are not destroyed
    int products[FAKE_ALGORITHMS]; // put into a stream, by algorithm
    int columns;                   // of the last product
} FakeCublas;
extern FakeCublas fake_cublas;
