#include "tests/simt/memory.hpp"

#include "tests/simt/settings.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

static const unsigned char CANARY = 0xc5;

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static unsigned char *map_of(const Guarded *g) { return (unsigned char *)g->map; }
static size_t page_size() {
    static const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    return size;
}
static size_t usable(const Guarded *g) { return g->mapped - page_size(); }

Guarded guarded_open(size_t bytes) {
    size_t page = page_size(), body = round_up(bytes + 16, page);
    void *map = mmap(nullptr, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect((char *)map + body, page, PROT_NONE)) abort();
    Guarded g = {(char *)map + body - round_up(bytes, 16), bytes, map, body + page};
    memset(map, CANARY, body);
    return g;
}

static void check(const Guarded *g) {
    const unsigned char *map = map_of(g), *data = (const unsigned char *)g->data;
    for (size_t i = 0, n = usable(g); i < n; i++)
        if ((map + i < data || map + i >= data + g->bytes) && map[i] != CANARY) {
            fprintf(stderr, "simt: memory of %zu bytes was written to at offset %td\n", g->bytes,
                    map + i - data);
            abort();
        }
}

void guarded_close(Guarded *g) {
    if (!g->map) return;
    check(g);
    munmap(g->map, g->mapped);
    *g = {nullptr, 0, nullptr, 0};
}

// --- device memory

static std::vector<Guarded> &all() {
    static std::vector<Guarded> list;
    return list;
}

void *device_take(size_t bytes) {
    Guarded g = guarded_open(bytes);
    memset(g.data, simt_settings.poison, bytes);
    all().push_back(g);
    return g.data;
}

void device_give(void *data) {
    for (size_t i = 0; i < all().size(); i++)
        if (all()[i].data == data) {
            Guarded g = all()[i];
            all().erase(all().begin() + (long)i);
            guarded_close(&g);
            return;
        }
    fprintf(stderr, "simt: memory is given back that was never taken\n");
    abort();
}

void device_lock(bool locked) {
    for (const Guarded &g : all()) mprotect(g.map, usable(&g), locked ? PROT_NONE : PROT_READ | PROT_WRITE);
}

void device_reach_only(const void *constant) {
    for (const Guarded &g : all())
        if (constant < g.map || constant >= (const char *)g.data + g.bytes)
            mprotect(g.map, usable(&g), PROT_NONE);
}

void device_reach_all() { device_lock(false); }

size_t simt_live_bytes() {
    size_t bytes = 0;
    for (const Guarded &g : all()) bytes += g.bytes;
    return bytes;
}
