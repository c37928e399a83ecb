#include "results/functions.h"

#include "engine/base/text.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static bool any_null(int count, sqlite3_value **values) {
    for (int i = 0; i < count; i++)
        if (sqlite3_value_type(values[i]) == SQLITE_NULL) return true;
    return false;
}

static void bits(sqlite3_context *c, int count, sqlite3_value **values) {
    if (any_null(count, values)) return;
    const uint8_t *row = sqlite3_value_blob(values[0]);
    int64_t size = sqlite3_value_bytes(values[0]), at = sqlite3_value_int64(values[1]);
    int64_t n = sqlite3_value_int64(values[2]), number = 0;
    if (at < 0 || n < 0 || n > 63) {
        sqlite3_result_error(c, "bits: at must be 0 or more, n from 0 to 63", -1);
        return;
    }
    for (int64_t i = 0; i < n && at < 8 * size - i; i++)
        number |= (int64_t)(row[(at + i) / 8] >> ((at + i) % 8) & 1) << i;
    sqlite3_result_int64(c, number);
}

static void ones(sqlite3_context *c, int count, sqlite3_value **values) {
    if (any_null(count, values)) return;
    sqlite3_result_int(c, __builtin_popcountll((uint64_t)sqlite3_value_int64(values[0])));
}

static void root(sqlite3_context *c, int count, sqlite3_value **values) {
    if (any_null(count, values)) return;
    sqlite3_result_double(c, sqrt(sqlite3_value_double(values[0]))); // no number becomes NULL
}

static double number_of(sqlite3_value *value) {
    return sqlite3_value_type(value) == SQLITE_NULL ? NAN : sqlite3_value_double(value);
}

static void measured(sqlite3_context *c, int count, sqlite3_value **values) {
    Text text = {0};
    (void)count;
    text_measured(&text, number_of(values[0]), number_of(values[1]), number_of(values[2]));
    if (text.failed) sqlite3_result_error_nomem(c);
    else if (text.length) sqlite3_result_text(c, text_get(&text), (int)text.length, SQLITE_TRANSIENT);
    text_release(&text);
}

int functions_add(sqlite3 *db) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int code = sqlite3_create_function(db, "bits", 3, flags, NULL, bits, NULL, NULL);
    if (code == SQLITE_OK) code = sqlite3_create_function(db, "ones", 1, flags, NULL, ones, NULL, NULL);
    if (code == SQLITE_OK) code = sqlite3_create_function(db, "sqrt", 1, flags, NULL, root, NULL, NULL);
    return code ? code : sqlite3_create_function(db, "measured", 3, flags, NULL, measured, NULL, NULL);
}
