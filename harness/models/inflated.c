#include "harness/models/inflated.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { NAME = 20 }; // digits of the key in the directory's name; inflate_is compares them all

// Waits for whoever makes it now. The lock goes with the process, however that ends; its file stays.
static int lock(const char *dir, Error *e) {
    Text path = {0};
    text_printf(&path, "%s.lock", dir);
    int fd = path.failed ? -1 : open(text_get(&path), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    bool held = fd >= 0;
    while (held && flock(fd, LOCK_EX))
        if (errno != EINTR) held = false;
    if (!held) error_system(e, "cannot lock '%s.lock': %s", dir, strerror(path.failed ? ENOMEM : errno));
    if (!held && fd >= 0) close(fd);
    text_release(&path);
    return held ? fd : -1;
}

static bool make(const char *dir, const char *key, const InflateOptions *o, Error *e) {
    int fd = lock(dir, e);
    if (fd < 0) return false;
    InflateOptions ours = *o;
    ours.force = true; // nobody else puts anything there
    bool ok = inflate_is(dir, key) || model_inflate(dir, &ours, e);
    close(fd);
    return ok;
}

char *inflated_find(const char *cache, const InflateOptions *o, Inflated *out, bool *there, Error *e) {
    Text dir = {0};
    if (!inflate_describe(o, out, e)) return NULL;
    text_printf(&dir, "%s/inflated/%.*s", cache, NAME, out->key);
    char *path = dir.failed ? NULL : mem_text(text_get(&dir), dir.length);
    text_release(&dir);
    if (path) *there = inflate_is(path, out->key);
    else error_system(e, "out of memory for a path");
    return path;
}

char *inflated_open(const char *cache, const InflateOptions *o, Error *e) {
    Inflated what;
    bool there;
    char *path = inflated_find(cache, o, &what, &there, e),
         *above = path ? file_path(cache, "inflated") : NULL;
    bool ok = path && (above || error_system(e, "out of memory for a path"));
    ok = ok && (there || (file_make_directory(above, e) && make(path, what.key, o, e)));
    mem_free(above);
    if (ok) return path;
    mem_free(path);
    return NULL;
}
