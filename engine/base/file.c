#include "engine/base/file.h"

#include "engine/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { MOST_TRIES = 10000 };

// Opens a regular file and tells its size; -1 with e filled if that cannot be.
static int open_regular(const char *path, size_t *size, Error *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // non-blocking: a FIFO must not hang us
    if (fd < 0) {
        error_input(e, "cannot open '%s': %s", path, strerror(errno));
        return -1;
    }
    struct stat st;
    bool told = fstat(fd, &st) == 0;
    if (!told || !S_ISREG(st.st_mode)) {
        error_input(e, "cannot read '%s': %s", path, told ? "not a regular file" : strerror(errno));
        close(fd);
        return -1;
    }
    *size = (size_t)st.st_size;
    return fd;
}

// What stands in a large file's place where a repository was cloned without Git LFS is refused, read or
// mapped.
static bool is_no_pointer(const char *path, const char *data, size_t size, Error *e) {
    static const char START[] = "version https://git-lfs.github.com/spec/";
    return size < sizeof START || memcmp(data, START, sizeof START - 1) != 0 ||
           error_input(e, "'%s' is a pointer of Git LFS, not the file: run 'git lfs pull' in its repository",
                       path);
}

bool file_map(const char *path, FileView *view, Error *e) {
    *view = (FileView){0};
    size_t size;
    int fd = open_regular(path, &size, e);
    if (fd < 0) return false;
    void *data = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    int why = errno;
    close(fd);
    if (data == MAP_FAILED) return error_system(e, "cannot map '%s': %s", path, strerror(why));
    *view = (FileView){data, size};
    if (is_no_pointer(path, data, size, e)) return true;
    file_unmap(view);
    return false;
}

// A view may begin behind the first byte of its first page (hold.h).
void file_unmap(FileView *view) {
    size_t before = (size_t)view->data % (size_t)sysconf(_SC_PAGESIZE);
    if (view->data) munmap((void *)((size_t)view->data - before), view->size + before);
    *view = (FileView){0};
}

// Fewer bytes than asked for means that the file shrank meanwhile.
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
    size_t n;
    int fd = open_regular(path, &n, e);
    if (fd < 0) return false;
    char *bytes = NULL;
    bool ok = n <= max_size ||
              error_input(e, "cannot read '%s': %zu bytes, at most %zu are allowed for such a file", path, n,
                          max_size);
    if (ok && !(bytes = mem_alloc(n + 1, 1))) ok = error_system(e, "out of memory reading '%s'", path);
    ok = ok && read_all(fd, bytes, n, path, e) && is_no_pointer(path, bytes, n, e);
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

// A temporary name beside path, for mem_free. It has the process's number and a count that goes up past
// whatever is there already, so two writers of one path never share a file.
static char *name_beside(const char *path, int i) {
    size_t bytes = strlen(path) + 48;
    char *name = mem_alloc(bytes, 1);
    if (name) snprintf(name, bytes, "%s.%ld-%d.part", path, (long)getpid(), i);
    else errno = ENOMEM;
    return name;
}

// Makes a name with `make`, past those that are taken. (mkstemp would give the file permissions of its own
// instead of the umask's.)
static bool take_name(FilePart *p, const char *path, bool (*make)(FilePart *p, const char *name)) {
    for (int i = 0; i < MOST_TRIES; i++) {
        char *name = name_beside(path, i);
        if (!name) return false;
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

// The way to a name for a file that has none goes through /proc.
static bool link_as(FilePart *p, const char *name) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", p->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

static bool has_no_nameless(int why) { return why == EOPNOTSUPP || why == EISDIR || why == EINVAL; }

bool file_part_open(FilePart *p, const char *path, Error *e) {
    char *directory = file_directory(path);
    *p = (FilePart){.fd = -1};
    if (!directory) return error_system(e, "out of memory for '%s'", path);
    bool nameless = access("/proc/self/fd", X_OK) == 0;
    if (nameless) p->fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    int why = errno;
    bool ok = p->fd >= 0;
    if (!ok && (!nameless || has_no_nameless(why))) {
        ok = take_name(p, path, create);
        why = errno;
    }
    mem_free(directory);
    return ok || cannot_write(path, why, e);
}

bool file_part_write(FilePart *p, const void *data, size_t size) {
    const char *from = data;
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

// Makes a rename in path's directory last. Some file systems cannot sync a directory and say EINVAL.
static bool sync_directory(const char *path) {
    char *directory = file_directory(path);
    FilePart d = {.fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1};
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
    char *directory = file_directory(path);
    bool unknown = !directory || statvfs(directory, &s) || s.f_blocks == 0;
    double megabyte = 1e6, room = unknown ? 0 : (double)s.f_bavail * (double)s.f_frsize;
    bool ok = unknown || bytes <= room ||
              error_system(e, "%s take %.1f MB, '%s' has room for %.1f", what, bytes / megabyte, directory,
                           room / megabyte);
    mem_free(directory);
    return ok;
}

char *file_path(const char *dir, const char *name) {
    size_t n = strlen(dir), bytes = n + strlen(name) + 2;
    char *path = mem_alloc(bytes, 1);
    if (path) snprintf(path, bytes, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    return path;
}
