// The functions that queries may use beside SQLite's own. NULL gives NULL.
//
//   bits(row, at, n)   bits [at, at + n) of a blob as a number: bit i is bit i % 8 of byte i / 8, bits past
//                      the blob's end are 0, n is 63 at most
//   ones(number)       how many of its bits are 1
//   sqrt(number)       its root: an SQLite may be built without its mathematics
//   measured(value, low, high)
//                      '1.95 [1.91, 2.00]', with the digits that the interval supports; low and high may be
//                      NULL
#pragma once
#include <sqlite3.h>

int functions_add(sqlite3 *db); // SQLite's code
