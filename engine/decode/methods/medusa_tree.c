#include "engine/decode/methods/medusa_tree.h"

#include <math.h>
#include <string.h>

double medusa_chance(int depth, int rank) { return 0.6 * pow(0.85, depth) * pow(rank + 1, -1.5); }

// --- growing: the likeliest node is always a next choice below the root or a node that is there

static double path_chance(const MedusaNode *nodes, int node) {
    double chance = 1;
    for (; node >= 0; node = nodes[node].parent) chance *= medusa_chance(nodes[node].depth, nodes[node].rank);
    return chance;
}

static int children(const MedusaNode *nodes, int count, int parent) {
    int n = 0;
    for (int i = 0; i < count; i++) n += nodes[i].parent == parent;
    return n;
}

// The next choice below each parent, the likeliest of them, the earliest of equals.
static bool grow_one(MedusaNode *nodes, int count, int depth, int ranks) {
    double best = 0;
    for (int parent = -1; parent < count; parent++) {
        MedusaNode next = {parent, parent < 0 ? 0 : nodes[parent].depth + 1, children(nodes, count, parent)};
        if (next.depth == depth || next.rank == ranks) continue;
        double chance = path_chance(nodes, parent) * medusa_chance(next.depth, next.rank);
        if (chance <= best) continue;
        best = chance;
        nodes[count] = next;
    }
    return best > 0;
}

int medusa_tree_grow(MedusaNode *out, int count, int depth, int ranks) {
    int n = 0;
    while (n < count && grow_one(out, n, depth, ranks)) n++;
    return n;
}

// --- reading

static int find(const MedusaNode *nodes, int count, int parent, int rank) {
    for (int i = 0; i < count; i++)
        if (nodes[i].parent == parent && nodes[i].rank == rank) return i;
    return -1;
}

// The node that a path of n digits without its last continues, or -1: the root; -2: it is not there.
static int find_parent(const MedusaNode *nodes, int count, const char *path, size_t n) {
    int parent = -1;
    for (size_t i = 0; i + 1 < n; i++) {
        parent = find(nodes, count, parent, path[i] - '0');
        if (parent < 0) return -2;
    }
    return parent;
}

static bool add_path(MedusaNode *out, int count, int depth, const char *path, size_t n, const char *place,
                     Error *e) {
    if (n > (size_t)depth)
        return error_input(e, "the path '%.*s' in %s is longer than the %d heads", (int)(n < 40 ? n : 40),
                           path, place, depth);
    int parent = find_parent(out, count, path, n), rank = path[n - 1] - '0';
    if (parent < -1)
        return error_input(e, "the path '%.*s' in %s stands before the one that it continues", (int)n, path,
                           place);
    if (find(out, count, parent, rank) >= 0)
        return error_input(e, "the path '%.*s' stands twice in %s", (int)n, path, place);
    out[count] = (MedusaNode){parent, (int)n - 1, rank};
    return true;
}

int medusa_tree_parse(MedusaNode *out, int most, int depth, const char *text, const char *place, Error *e) {
    static const char digits[] = "0123456789";
    int count = 0;
    for (text += strcspn(text, digits); *text; text += strcspn(text, digits)) {
        size_t n = strspn(text, digits);
        if (count == most) {
            error_input(e, "%s has more than %d paths", place, most);
            return -1;
        }
        if (!add_path(out, count, depth, text, n, place, e)) return -1;
        count++;
        text += n;
    }
    if (count == 0) error_input(e, "%s holds no path, such as 0 or 01", place);
    return count ? count : -1;
}
