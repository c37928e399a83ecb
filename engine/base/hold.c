// Several threads read: most of the time goes into pages that are made as they are first written.
#include "engine/base/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PART = 8 << 20, THREADS_MOST = 8, ENDED_EARLY = -1, INTERRUPTED = -2 };

typedef struct Hold {
    int fd;
    unsigned char *data;
    size_t size;
    atomic_size_t taken;
    atomic_int why; // an errno, ENDED_EARLY or INTERRUPTED
} Hold;

static int read_part(const Hold *h, size_t from, size_t to) {
    while (from < to) {
        ssize_t n = pread(h->fd, h->data + from, to - from, (off_t)from);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return ENDED_EARLY;
        from += (size_t)n;
    }
    return 0;
}

// False where there is none left, or one has failed.
static bool read_next(Hold *h) {
    size_t from = atomic_load(&h->why) ? h->size : atomic_fetch_add(&h->taken, PART);
    if (from >= h->size) return false;
    int why = read_part(h, from, h->size - from < PART ? h->size : from + PART);
    if (why) atomic_store(&h->why, why);
    return true;
}

static void *read_parts(void *hold) {
    while (read_next(hold)) {}
    return NULL;
}

// As many threads as there are processors; what could not be started is done by the others.
static void read_by_threads(Hold *h, const Progress *progress, Error *e) {
    pthread_t threads[THREADS_MOST];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int most = processors < THREADS_MOST ? (int)processors : THREADS_MOST, started = 0;
    while (started < most - 1 && pthread_create(&threads[started], NULL, read_parts, h) == 0) started++;
    while (read_next(h)) {
        size_t taken = atomic_load(&h->taken);
        double share = taken < h->size ? (double)taken / (double)h->size : 1;
        if (!progress_say(progress, "reading weights", share, e)) atomic_store(&h->why, INTERRUPTED);
    }
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

static bool read_file(const char *path, Hold *h, const Progress *progress, Error *e) {
    h->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (h->fd < 0) return error_input(e, "cannot open '%s': %s", path, strerror(errno));
    read_by_threads(h, progress, e);
    close(h->fd);
    if (h->why == INTERRUPTED) return false;
    if (h->why == ENDED_EARLY)
        return error_input(e, "cannot read '%s': it became shorter while it was read", path);
    return h->why == 0 || error_system(e, "cannot read '%s': %s", path, strerror(h->why));
}

bool file_hold(const char *path, FileView *view, size_t first, const Progress *progress, Error *e) {
    enum { LINE = 64 };
    size_t before = (LINE - first % LINE) % LINE, size = view->size + before;
    if (!view->data) return true;
    unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return error_system(e, "there is no memory to hold the %.1f GB of '%s': leave weights mapped",
                            (double)size / 1e9, path);
    madvise(memory, size, MADV_HUGEPAGE); // refused: ordinary pages
    Hold h = {.data = memory + before, .size = view->size};
    if (!read_file(path, &h, progress, e)) {
        munmap(memory, size);
        return false;
    }
    mprotect(memory, size, PROT_READ); // a guard only
    file_unmap(view);
    *view = (FileView){h.data, h.size};
    return true;
}
