#include "engine/base/file.h"

#include "engine/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return true;
}

void file_unmap(FileView *view) {
    if (view->data) munmap((void *)(size_t)view->data, view->size);
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
    ok = ok && read_all(fd, bytes, n, path, e);
    close(fd);
    if (!ok) {
        mem_free(bytes);
        return false;
    }
    *data = bytes;
    *size = n;
    return true;
}

static bool write_all(int fd, const char *data, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, data + done, size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return fsync(fd) == 0;
}

bool file_write(const char *path, const void *data, size_t size, Error *e) {
    char temporary[4096];
    int n = snprintf(temporary, sizeof temporary, "%s.part", path);
    if (n < 0 || (size_t)n >= sizeof temporary)
        return error_input(e, "cannot write '%s': path too long", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return error_system(e, "cannot write '%s': %s", path, strerror(errno));
    bool ok = write_all(fd, data, size);
    int why = errno;
    if (close(fd) && ok) ok = false, why = errno;
    if (ok && rename(temporary, path)) ok = false, why = errno;
    if (!ok) {
        unlink(temporary);
        return error_system(e, "cannot write '%s': %s", path, strerror(why));
    }
    return true;
}

bool file_exists(const char *path) { return access(path, R_OK) == 0; }

char *file_path(const char *dir, const char *name) {
    size_t n = strlen(dir), bytes = n + strlen(name) + 2;
    char *path = mem_alloc(bytes, 1);
    if (path) snprintf(path, bytes, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    return path;
}
