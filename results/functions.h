// What questions may ask beside SQLite's own functions. NULL gives NULL.
//
//   bits(row, at, n)   n bits of a row of bits (a blob; bit i is bit i % 8 of byte i / 8) from bit `at` on,
//   as a
//                      number; n is 63 at most; beyond the row's end they are 0
//   ones(number)       how many of its bits are 1
#pragma once
#include <sqlite3.h>

int functions_add(sqlite3 *db); // SQLite's code
