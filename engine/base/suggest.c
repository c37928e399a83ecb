#include "engine/base/suggest.h"

#include <string.h>

enum { LONGEST = 64 };

static int least(int a, int b, int c) {
    int m = a < b ? a : b;
    return m < c ? m : c;
}

// The usual table, row by row; three rows are kept for swaps of neighbours.
int suggest_distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n >= LONGEST || m >= LONGEST) return strcmp(a, b) ? LONGEST : 0;
    int rows[3][LONGEST];
    for (size_t j = 0; j <= m; j++) rows[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *now = rows[i % 3];
        const int *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

const char *suggest(const char *word, const void *table, size_t count,
                    const char *(*name_at)(const void *, size_t)) {
    int best = LONGEST, allowed = (int)strlen(word) / 3 + 1;
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        int d = suggest_distance(word, name_at(table, i));
        if (d < best) {
            best = d;
            found = name_at(table, i);
        }
    }
    return best <= allowed ? found : NULL;
}
