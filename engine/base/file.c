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
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        error_input(e, "cannot read '%s': not a regular file", path);
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

// Creates a new file beside path and puts its name into `name`. The name has the process's number and a count
// that goes up past whatever is there already, so two writers of one path never share a file. (mkstemp would
// give it permissions of its own instead of the umask's.)
static int create_beside(const char *path, char *name, size_t capacity) {
    for (int i = 0; i < MOST_TRIES; i++) {
        int n = snprintf(name, capacity, "%s.%ld-%d.part", path, (long)getpid(), i);
        if (n < 0 || (size_t)n >= capacity) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

static bool write_all(int fd, const char *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, data + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        done += (size_t)n;
    }
    return fsync(fd) == 0;
}

// Closes; false if the work before it or this failed, with errno from the first that did.
static bool close_after(int fd, bool ok) {
    int why = errno;
    if (close(fd) && ok) return false;
    errno = why;
    return ok;
}

// Makes a rename in path's directory last. Some file systems cannot sync a directory and say EINVAL.
static bool sync_directory(const char *path) {
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && close_after(fd, fsync(fd) == 0 || errno == EINVAL);
}

bool file_write(const char *path, const void *data, size_t size, Error *e) {
    char temporary[PATH_MAX];
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return error_input(e, "cannot write '%s': not a regular file", path);
    int fd = create_beside(path, temporary, sizeof temporary);
    if (fd < 0) return error_system(e, "cannot write '%s': %s", path, strerror(errno));
    if (!close_after(fd, write_all(fd, data, size)) || rename(temporary, path)) {
        int why = errno;
        unlink(temporary);
        return error_system(e, "cannot write '%s': %s", path, strerror(why));
    }
    return sync_directory(path) ||
           error_system(e, "cannot sync the directory of '%s': %s", path, strerror(errno));
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

char *file_path(const char *dir, const char *name) {
    size_t n = strlen(dir), bytes = n + strlen(name) + 2;
    char *path = mem_alloc(bytes, 1);
    if (path) snprintf(path, bytes, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    return path;
}
