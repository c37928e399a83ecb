// A claim is a lock on one byte of the store's file, far after any that it can have: byte CLAIMS + run. The
// system takes it back when the process ends, however that ends, so there is nothing to clean up after a
// kill.
//
// SQLite's own locks on this file belong to the process, and go when the process closes any descriptor of it.
// So the claim's descriptor is closed after SQLite's (store_close), and a process that claims opens its store
// once.
#include "results/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define CLAIMS ((off_t)1 << 60)

static struct flock byte_of(int64_t run) {
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = CLAIMS + (off_t)run, .l_len = 1};
}

// Opened once. Below 0: it cannot be.
static int claims_file(Store *s, int flags) {
    if (s->claims < 0) s->claims = open(s->path, flags | O_CLOEXEC);
    return s->claims;
}

bool store_claim(Store *s, int64_t run, Error *e) {
    struct flock lock = byte_of(run);
    int file = claims_file(s, O_RDWR);
    if (file < 0) return error_system(e, "store '%s': it cannot be opened to be locked", s->path);
    if (fcntl(file, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES)) return true;
    return error_input(e,
                       "store '%s': another process measures run %lld at this moment: let it end, or end it",
                       s->path, (long long)run);
}

bool store_claimed(Store *s, int64_t run) {
    struct flock lock = byte_of(run);
    int file = claims_file(s, s->writable ? O_RDWR : O_RDONLY);
    return file >= 0 && fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
