#include "tests/simt/memory.hpp"

#include "tests/simt/settings.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

static const unsigned char CANARY = 0xc5;
static const size_t HUGE_PAGE = (size_t)2 << 20;

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static unsigned char *map_of(const Guarded *g) { return (unsigned char *)g->map; }
static size_t page_size() {
    static const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    return size;
}
static size_t usable(const Guarded *g) { return g->mapped - page_size(); }

Guarded guarded_open(size_t bytes) {
    size_t page = page_size(), body = round_up(bytes + 16, page);
    // Large ones lie on huge pages, since access to them is taken away and given back around each kernel.
    size_t huge = body >= HUGE_PAGE ? HUGE_PAGE : page, whole = body + page + huge - page;
    void *map = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) abort();
    size_t before = round_up((size_t)map, huge) - (size_t)map, after = whole - before - body - page;
    if (before) munmap(map, before);
    map = (char *)map + before;
    if (after) munmap((char *)map + body + page, after);
    if (mprotect((char *)map + body, page, PROT_NONE)) abort();
    if (huge > page) madvise(map, body, MADV_HUGEPAGE);
    Guarded g = {(char *)map + body - round_up(bytes, 16), bytes, map, body + page};
    memset(map, CANARY, (size_t)((char *)g.data - (char *)map));
    memset((char *)g.data + bytes, CANARY, round_up(bytes, 16) - bytes);
    return g;
}

static void check(const Guarded *g, const unsigned char *from, const unsigned char *to) {
    for (const unsigned char *p = from; p < to; p++)
        if (*p != CANARY) {
            fprintf(stderr, "simt: memory of %zu bytes was written to at offset %td\n", g->bytes,
                    p - (const unsigned char *)g->data);
            abort();
        }
}

void guarded_close(Guarded *g) {
    if (!g->map) return;
    const unsigned char *map = map_of(g), *data = (const unsigned char *)g->data;
    check(g, map, data);
    check(g, data + g->bytes, map + usable(g));
    munmap(g->map, g->mapped);
    *g = {nullptr, 0, nullptr, 0};
}

// --- device memory

struct Owned : Guarded {
    int owner;
};
static std::vector<Owned> &all() {
    static std::vector<Owned> list;
    return list;
}
static int &reach() {
    static int whose = OF_ALL;
    return whose;
}
static struct sigaction &handler_before() {
    static struct sigaction action;
    return action;
}

static bool reaches(int whose, const Owned &g) { return whose == OF_ALL || whose == g.owner; }
static void protect(const Owned &g) {
    bool there = reaches(reach(), g);
    mprotect(g.map, usable(&g), there ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// The same fault happens again and goes to the previous handler of the signal.
static void tell_whose(int, siginfo_t *info, void *) {
    for (const Owned &g : all())
        if (info->si_addr >= g.map && info->si_addr < (const char *)g.map + g.mapped && reach() >= 0 &&
            g.owner != reach()) {
            char line[96];
            int n = snprintf(line, sizeof line, "simt: touches memory of device %d on device %d\n", g.owner,
                             reach());
            if (write(2, line, (size_t)n) < 0) break;
        }
    sigaction(SIGSEGV, &handler_before(), nullptr);
}
static void name_strangers() {
    struct sigaction action = {};
    action.sa_sigaction = tell_whose;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &handler_before());
}

void *device_take(size_t bytes, int owner) {
    static bool several;
    if (owner > 0 && !several) name_strangers();
    several |= owner > 0;
    Owned g;
    (Guarded &)g = guarded_open(bytes);
    g.owner = owner;
    memset(g.data, simt_settings.poison, bytes);
    all().push_back(g);
    protect(g);
    return g.data;
}

void device_give(void *data) {
    for (size_t i = 0; i < all().size(); i++)
        if (all()[i].data == data) {
            Guarded g = all()[i];
            mprotect(g.map, usable(&g), PROT_READ | PROT_WRITE);
            all().erase(all().begin() + (long)i);
            guarded_close(&g);
            return;
        }
    fprintf(stderr, "simt: memory is given back that was never taken\n");
    abort();
}

bool device_holds(const void *data, size_t bytes) {
    for (const Owned &g : all())
        if (data >= g.data && (const char *)data + bytes <= (const char *)g.data + g.bytes) return true;
    return false;
}

int device_reach(int owner) {
    int before = reach();
    reach() = owner;
    if (before == owner) return before;
    for (const Owned &g : all())
        if (reaches(before, g) != reaches(owner, g)) protect(g);
    return before;
}

void device_reach_only(const void *constant) {
    for (const Owned &g : all())
        if (constant < g.map || constant >= (const char *)g.data + g.bytes)
            mprotect(g.map, usable(&g), PROT_NONE);
}

void device_reach_all() {
    for (const Owned &g : all()) protect(g);
}

size_t simt_live_bytes() {
    size_t bytes = 0;
    for (const Owned &g : all()) bytes += g.bytes;
    return bytes;
}
size_t device_live_bytes(int owner) {
    size_t bytes = 0;
    for (const Owned &g : all()) bytes += g.owner == owner ? g.bytes : 0;
    return bytes;
}
