// Whole files. Invariants: a part has a descriptor, and a name only where the file system can't do without
// one; a path is never seen half written.
#include "engine/base/file.h"

#include "engine/base/memory.h"
#include "engine/base/system.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MOST_TRIES = 10000 };

static FileMark mark_of(const struct stat *s) {
    return (FileMark){.device = s->st_dev,
                      .inode = s->st_ino,
                      .size = s->st_size,
                      .written_ns = s->st_mtim.tv_sec * 1000000000LL + s->st_mtim.tv_nsec};
}

// Opens a regular file and finds its mark; -1 with e filled if it can't.
static int open_regular(const char *path, FileMark *mark, Error *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // non-blocking: a FIFO must not hang us
    if (fd < 0) {
        error_input(e, "cannot open '%s': %s", path, strerror(errno));
        return -1;
    }
    struct stat st;
    bool found = fstat(fd, &st) == 0;
    if (!found || !S_ISREG(st.st_mode)) {
        error_input(e, "cannot read '%s': %s", path, found ? "not a regular file" : strerror(errno));
        close(fd);
        return -1;
    }
    *mark = mark_of(&st);
    return fd;
}

// Refuses a Git LFS pointer: a clone made without Git LFS has one in place of each large file.
static bool refuse_pointer(const char *path, const char *data, size_t size, Error *e) {
    static const char START[] = "version https://git-lfs.github.com/spec/";
    return size < sizeof START || memcmp(data, START, sizeof START - 1) != 0 ||
           error_input(e, "'%s' is a pointer of Git LFS, not the file: run 'git lfs pull' in its repository",
                       path);
}

bool file_map(const char *path, FileView *view, Error *e) {
    *view = (FileView){0};
    FileMark mark;
    int fd = open_regular(path, &mark, e);
    if (fd < 0) return false;
    size_t size = (size_t)mark.size;
    void *data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    int why = errno;
    close(fd);
    if (data == MAP_FAILED) return error_system(e, "cannot map '%s': %s", path, strerror(why));
    *view = (FileView){data, size, mark};
    if (refuse_pointer(path, data, size, e)) return true;
    file_unmap(view);
    return false;
}

bool file_is_unchanged(const FileView *view, const char *path, Error *e) {
    struct stat s;
    FileMark now = {0};
    if (!view->mark.inode) return true;
    if (stat(path, &s) == 0) now = mark_of(&s);
    return memcmp(&now, &view->mark, sizeof now) == 0 ||
           error_input(e, "'%s' changed while in use: nothing computed from it since is of use; run again",
                       path);
}

// A view from file_hold may begin after the first byte of its first page.
void file_unmap(FileView *view) {
    size_t before = (size_t)view->data % (size_t)sysconf(_SC_PAGESIZE);
    if (view->data) munmap((void *)((size_t)view->data - before), view->size + before);
    *view = (FileView){0};
}

bool file_empty(size_t size, FileView *view, Error *e) {
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return error_system(e, "no room for %zu bytes: %s", size, strerror(errno));
    *view = (FileView){.data = data, .size = size};
    return true;
}

// If the file ends early, it was truncated after it was opened.
static bool read_all(int fd, char *data, size_t size, const char *path, Error *e) {
    for (size_t done = 0; done < size;) {
        ssize_t n = read(fd, data + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_system(e, "cannot read '%s': %s", path, strerror(errno));
        if (n == 0) return error_input(e, "cannot read '%s': it ended at byte %zu of %zu", path, done, size);
        done += (size_t)n;
    }
    return true;
}

bool file_read(const char *path, size_t max_size, char **data, size_t *size, Error *e) {
    *data = NULL;
    *size = 0;
    FileMark mark;
    int fd = open_regular(path, &mark, e);
    if (fd < 0) return false;
    size_t n = (size_t)mark.size;
    char *bytes = NULL;
    bool ok = n <= max_size ||
              error_input(e, "cannot read '%s': %zu bytes, at most %zu are allowed for such a file", path, n,
                          max_size);
    if (ok && !(bytes = mem_try(n + 1, 1))) ok = error_system(e, "out of memory reading '%s'", path);
    ok = ok && read_all(fd, bytes, n, path, e) && refuse_pointer(path, bytes, n, e);
    close(fd);
    if (!ok) {
        mem_free(bytes);
        return false;
    }
    *data = bytes;
    *size = n;
    return true;
}

// --- writing ---------------------------------------------------------------------------------------------

static bool cannot_write(const char *path, int why, Error *e) {
    return error_system(e, "cannot write '%s': %s", path, strerror(why));
}

char *file_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? mem_text(path, slash > path ? (size_t)(slash - path) : 1) : mem_text(".", 1);
}

// Gives the part a temporary name in path's directory, by `make`. The name has the process's number and a
// count that skips names in use, so two writers of one path never share a file. (mkstemp would set its own
// permissions instead of the umask's.)
static bool take_name(FilePart *p, const char *path, bool (*make)(FilePart *p, const char *name)) {
    for (int i = 0; i < MOST_TRIES; i++) {
        char *name = mem_printf("%s.%ld-%d.part", path, (long)getpid(), i);
        if (make(p, name)) {
            p->name = name;
            return true;
        }
        int why = errno;
        mem_free(name);
        errno = why;
        if (why != EEXIST) return false;
    }
    return false;
}

static bool create(FilePart *p, const char *name) {
    p->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return p->fd >= 0;
}

// A file without a name gets one through /proc.
static bool link_as(FilePart *p, const char *name) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", p->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

bool file_part_open(FilePart *p, const char *path, Error *e) {
    LOCAL_MEMORY char *directory = file_directory(path);
    *p = (FilePart){.fd = -1};
    bool nameless = access("/proc/self/fd", X_OK) == 0;
    if (nameless) p->fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    int why = errno;
    bool ok = p->fd >= 0;
    bool lacks_nameless = !nameless || why == EOPNOTSUPP || why == EISDIR || why == EINVAL;
    if (!ok && lacks_nameless) {
        ok = take_name(p, path, create);
        why = errno;
    }
    assert(!ok || p->fd >= 0);
    return ok || cannot_write(path, why, e);
}

bool file_part_write(FilePart *p, const void *data, size_t size) {
    const char *from = data;
    assert(p->fd >= 0);
    for (size_t done = 0; done < size;) {
        ssize_t n = write(p->fd, from + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        done += (size_t)n;
    }
    return true;
}

static bool close_part(FilePart *p) {
    int fd = p->fd;
    p->fd = -1;
    return fd < 0 || close(fd) == 0;
}

void file_part_drop(FilePart *p) {
    int why = errno;
    close_part(p);
    if (p->name) unlink(p->name);
    mem_free(p->name);
    p->name = NULL;
    errno = why;
}

// Makes a rename in path's directory durable. Some file systems can't sync a directory and report EINVAL.
static bool sync_directory(const char *path) {
    char *directory = file_directory(path);
    FilePart d = {.fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    bool ok = d.fd >= 0 && (fsync(d.fd) == 0 || errno == EINVAL);
    int why = errno;
    mem_free(directory);
    if (!close_part(&d) && ok) return false;
    errno = why;
    return ok;
}

bool file_part_finish(FilePart *p, const char *path, Error *e) {
    bool ok = fsync(p->fd) == 0 && (p->name || take_name(p, path, link_as)) && close_part(p) &&
              rename(p->name, path) == 0;
    if (!ok) {
        file_part_drop(p);
        return cannot_write(path, errno, e);
    }
    mem_free(p->name);
    p->name = NULL;
    return sync_directory(path) ||
           error_system(e, "cannot sync the directory of '%s': %s", path, strerror(errno));
}

bool file_write(const char *path, const void *data, size_t size, Error *e) {
    struct stat st;
    FilePart p;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return error_input(e, "cannot write '%s': not a regular file", path);
    if (!file_part_open(&p, path, e)) return false;
    if (file_part_write(&p, data, size)) return file_part_finish(&p, path, e);
    file_part_drop(&p);
    return cannot_write(path, errno, e);
}

bool file_exists(const char *path) { return access(path, R_OK) == 0; }

bool file_reader_left(int descriptor) {
    struct pollfd out = {.fd = descriptor};
    return poll(&out, 1, 0) > 0 && out.revents & POLLERR;
}

static bool make_one(const char *path, Error *e) {
    struct stat st;
    if (mkdir(path, 0777) == 0) return true;
    int why = errno;
    return (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) ||
           error_system(e, "cannot make the directory '%s': %s", path, strerror(why));
}

bool file_make_directory(const char *path, Error *e) {
    char part[PATH_MAX];
    if (strlen(path) >= sizeof part) return error_input(e, "the path '%.200s...' is too long", path);
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (!make_one(part, e)) return false;
    }
    return make_one(path, e);
}

bool file_has_room(const char *path, double bytes, const char *what, Error *e) {
    struct statvfs s;
    LOCAL_MEMORY char *directory = file_directory(path);
    bool unknown = statvfs(directory, &s) || s.f_blocks == 0;
    double megabyte = 1e6, room = unknown ? 0 : (double)s.f_bavail * (double)s.f_frsize;
    return unknown || bytes <= room ||
           error_system(e, "%s take %.1f MB, '%s' has room for %.1f", what, bytes / megabyte, directory,
                        room / megabyte);
}

char *file_path(const char *dir, const char *name) {
    size_t n = strlen(dir);
    return mem_printf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

// --- a file in memory of our own: several threads read, since most of the time goes into first writes to
// pages

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

// False if none is left, or one has failed.
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

// One thread per processor; if some can't be started, the others do their work.
static void read_by_threads(Hold *h, const Progress *progress, Error *e) {
    pthread_t threads[THREADS_MOST];
    int processors = system_processors((int)sysconf(_SC_NPROCESSORS_ONLN));
    int most = processors < THREADS_MOST ? processors : THREADS_MOST, started = 0;
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
        return error_system(e, "out of memory for the %.1f GB of '%s': leave weights mapped",
                            (double)size / 1e9, path);
    madvise(memory, size, MADV_HUGEPAGE); // if refused, ordinary pages will do
    Hold h = {.data = memory + before, .size = view->size};
    if (!read_file(path, &h, progress, e)) {
        munmap(memory, size);
        return false;
    }
    mprotect(memory, size, PROT_READ); // only a guard: failure doesn't matter
    file_unmap(view);
    *view = (FileView){.data = h.data, .size = h.size};
    return true;
}

// --- SHA-256

// digest: (32)
static void put_digits(const unsigned char *digest, char out[SHA256_TEXT]) {
    for (unsigned i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

bool sha256_bytes(const void *data, size_t n, char out[SHA256_TEXT], Error *e) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (!EVP_Digest(data, n, digest, &length, EVP_sha256(), NULL) || length != 32)
        return error_system(e, "cannot compute SHA-256 of %zu bytes", n);
    put_digits(digest, out);
    return true;
}

static bool cannot_hash(const char *path, Error *e) {
    return error_system(e, "cannot compute SHA-256 of '%s'", path);
}

// Read in parts: mapping a large file takes address space, which may be limited.
static bool digest_file(int fd, size_t size, const char *path, EVP_MD_CTX *context, Error *e) {
    static const size_t MOST = 256 << 10;
    LOCAL_MEMORY char *bytes = mem_new(MOST, 1);
    bool ok = true;
    for (size_t done = 0, n; ok && done < size; done += n) {
        n = size - done < MOST ? size - done : MOST;
        ok = read_all(fd, bytes, n, path, e) && (done || refuse_pointer(path, bytes, n, e)) &&
             (EVP_DigestUpdate(context, bytes, n) || cannot_hash(path, e));
    }
    return ok;
}

bool sha256_file(const char *path, char out[SHA256_TEXT], Error *e) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    FileMark mark;
    int fd = open_regular(path, &mark, e);
    if (fd < 0) return false;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = (context && EVP_DigestInit_ex(context, EVP_sha256(), NULL)) || cannot_hash(path, e);
    ok = ok && digest_file(fd, (size_t)mark.size, path, context, e) &&
         (EVP_DigestFinal_ex(context, digest, NULL) || cannot_hash(path, e));
    if (ok) put_digits(digest, out);
    EVP_MD_CTX_free(context);
    close(fd);
    return ok;
}
