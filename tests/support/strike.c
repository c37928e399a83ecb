#include "tests/support/check.h"

#include "tests/support/strike.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_SECONDS = 300, COULD_NOT_START = 255 };

const char *const STRIKE_NAMES[] = {"open",   "read",   "write", "sync", "rename", "map",   "close", "resize",
                                    "remove", "folder", "lock",  "stat", "pipe",   "start", "memory"};

// How a call names its file.
typedef enum { NOTHING, DESCRIPTOR, PATH, PATH_AT, NEW_PATH } Naming;

static const struct {
    int number;
    StrikeKind kind;
    Naming naming;
} CALLS[] = {
    {SYS_openat, STRIKE_OPEN, PATH_AT},
    {SYS_read, STRIKE_READ, DESCRIPTOR},
    {SYS_pread64, STRIKE_READ, DESCRIPTOR},
    {SYS_readv, STRIKE_READ, DESCRIPTOR},
    {SYS_write, STRIKE_WRITE, DESCRIPTOR},
    {SYS_pwrite64, STRIKE_WRITE, DESCRIPTOR},
    {SYS_writev, STRIKE_WRITE, DESCRIPTOR},
    {SYS_fsync, STRIKE_SYNC, DESCRIPTOR},
    {SYS_fdatasync, STRIKE_SYNC, DESCRIPTOR},
    {SYS_renameat2, STRIKE_RENAME, PATH_AT},
    {SYS_linkat, STRIKE_RENAME, NEW_PATH},
    {SYS_mmap, STRIKE_MAP, NOTHING},
    {SYS_close, STRIKE_CLOSE, DESCRIPTOR},
    {SYS_ftruncate, STRIKE_RESIZE, DESCRIPTOR},
    {SYS_fallocate, STRIKE_RESIZE, DESCRIPTOR},
    {SYS_unlinkat, STRIKE_REMOVE, PATH_AT},
    {SYS_mkdirat, STRIKE_FOLDER, PATH_AT},
    {SYS_fcntl, STRIKE_LOCK, DESCRIPTOR},
    {SYS_flock, STRIKE_LOCK, DESCRIPTOR},
    {SYS_newfstatat, STRIKE_STAT, PATH_AT},
    {SYS_fstat, STRIKE_STAT, DESCRIPTOR},
    {SYS_pipe2, STRIKE_START, NOTHING},
    {SYS_clone, STRIKE_START, NOTHING},
    {SYS_brk, STRIKE_MEMORY, NOTHING},
#ifdef SYS_clone3
    {SYS_clone3, STRIKE_START, NOTHING},
#endif
#ifdef SYS_renameat
    {SYS_renameat, STRIKE_RENAME, PATH_AT},
#endif
#ifdef SYS_open // older architectures have these besides the newer calls
    {SYS_open, STRIKE_OPEN, PATH},
    {SYS_rename, STRIKE_RENAME, PATH},
    {SYS_unlink, STRIKE_REMOVE, PATH},
    {SYS_rmdir, STRIKE_REMOVE, PATH},
    {SYS_mkdir, STRIKE_FOLDER, PATH},
    {SYS_stat, STRIKE_STAT, PATH},
    {SYS_vfork, STRIKE_START, NOTHING},
#endif
};
enum { CALL_COUNT = sizeof CALLS / sizeof *CALLS };

// These count only after the program has touched the folder by any call.
enum { AFTERWARDS = 1 << STRIKE_PIPE | 1 << STRIKE_START | 1 << STRIKE_MEMORY };

// In the child: the calls of the table that matter to `kinds` ask, all others pass. The descriptor on which
// they ask.
static int install(unsigned kinds) {
    // Question and answer on the same processor, at once: a busy machine would let each of them wait for its
    // turn. Since Linux 6.6; the headers may be older.
    static const unsigned long IOCTL_SET_FLAGS = _IOW('!', 4, uint64_t), SYNC_WAKE_UP = 1;
    struct sock_filter filter[2 * CALL_COUNT + 2];
    int n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALL_COUNT; i++) {
        if (!(kinds & (AFTERWARDS | 1u << CALLS[i].kind))) continue;
        filter[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)CALLS[i].number, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    int asks = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (asks >= 0) ioctl(asks, IOCTL_SET_FLAGS, SYNC_WAKE_UP);
    return asks;
}

// A descriptor through a socket: the one that asks must leave the child before the child's first question.
typedef union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} Passed;

static bool pass(int socket, int fd) {
    char byte = 0;
    Passed p = {.head = {.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec data = {&byte, 1};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &p, .msg_controllen = sizeof p};
    memcpy(CMSG_DATA(&p.head), &fd, sizeof fd);
    return sendmsg(socket, &m, 0) == 1;
}

static int receive(int socket) {
    char byte;
    int fd = -1;
    Passed p;
    struct iovec data = {&byte, 1};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &p, .msg_controllen = sizeof p};
    if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) == 1 && m.msg_controllen >= CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(&p.head), sizeof fd);
    return fd;
}

typedef struct {
    Strike *s;
    const char *folder;
    pid_t main;
    int asks;   // where the questions come
    int seen;   // calls that are numbered
    bool begun; // the first file was touched: from here on it is the program that asks, not its loader
} Watch;

static int call_row(int number) {
    int i = 0;
    while (CALLS[i].number != number) i++; // the filter lets no other through
    return i;
}

static bool is_main(const Watch *w, pid_t thread) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", (int)w->main, (int)thread);
    return access(path, F_OK) == 0;
}

static bool read_link(char *path, size_t size, const char *format, pid_t pid, int fd) {
    char name[64];
    snprintf(name, sizeof name, format, (int)pid, fd);
    ssize_t n = readlink(name, path, size - 1);
    path[n > 0 ? n : 0] = 0;
    return n > 0;
}

static bool read_memory(pid_t pid, uint64_t from, void *to, size_t n) {
    struct iovec here = {to, n}, there = {(void *)(uintptr_t)from, n};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

// A string of the other process, to the end of its page at most: the next one may not be mapped.
static void read_string(pid_t pid, uint64_t from, char *to, size_t size) {
    enum { PAGE = 4096 };
    size_t n = 0;
    to[0] = 0;
    while (n < size - 1) {
        size_t whole = PAGE - (from + n) % PAGE, part = whole < size - 1 - n ? whole : size - 1 - n;
        if (!read_memory(pid, from + n, to + n, part)) break;
        if (memchr(to + n, 0, part)) return;
        n += part;
    }
    to[n] = 0;
}

// The file of a call: "" if it has none. A relative name is in the child's folder.
static void name_file(const struct seccomp_notif *q, Naming naming, char *path, size_t size) {
    pid_t pid = (pid_t)q->pid;
    const uint64_t *a = (const uint64_t *)q->data.args;
    path[0] = 0;
    if (naming == DESCRIPTOR) read_link(path, size, "/proc/%d/fd/%d", pid, (int)a[0]);
    if (naming < PATH) return;
    char name[4096];
    int at = naming == PATH ? AT_FDCWD : naming == PATH_AT ? (int)a[0] : (int)a[2];
    read_string(pid, a[naming - PATH + (naming == NEW_PATH)], name, sizeof name);
    if (name[0] != '/') read_link(path, size, at == AT_FDCWD ? "/proc/%d/cwd" : "/proc/%d/fd/%d", pid, at);
    size_t n = strlen(path);
    if (name[0]) snprintf(path + n, size - n, "%s%s", name[0] == '/' ? "" : "/", name);
}

static bool is_lock(const struct seccomp_notif *q) {
    int what = (int)q->data.args[1];
    return q->data.nr == SYS_flock || what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK;
}

// The kind of a call that counts, and its file; STRIKE_KINDS for one that does not.
static StrikeKind kind_of(Watch *w, const struct seccomp_notif *q, char *path, size_t size) {
    int row = call_row(q->data.nr);
    StrikeKind kind = CALLS[row].kind;
    size_t n = strlen(w->folder);
    bool memory = kind == STRIKE_MAP && (q->data.args[3] & MAP_ANONYMOUS);
    name_file(q, CALLS[row].naming, path, size);
    if (kind == STRIKE_MAP && !memory)
        read_link(path, size, "/proc/%d/fd/%d", (pid_t)q->pid, (int)q->data.args[4]);
    // Not the font caches, with hundreds of calls: the program does without them.
    if (strncmp(path, w->folder, n) == 0 && path[n] == '/' && !strstr(path, "fontconfig")) {
        w->begun = true;
        return kind == STRIKE_LOCK && !is_lock(q) ? STRIKE_KINDS : kind;
    }
    if (!w->begun || !is_main(w, (pid_t)q->pid)) return STRIKE_KINDS;
    if (memory || kind == STRIKE_MEMORY) return STRIKE_MEMORY;
    if (kind == STRIKE_START) return kind;
    return strncmp(path, "pipe:", 5) == 0 && (kind == STRIKE_READ || kind == STRIKE_WRITE) ? STRIKE_PIPE
                                                                                           : STRIKE_KINDS;
}

// Whether a read or a write would not wait: a pipe may be filled only by a child that waits for our answers.
static bool is_ready(int fd, bool reads) {
    struct pollfd on = {.fd = fd, .events = reads ? POLLIN : POLLOUT};
    return poll(&on, 1, 0) > 0;
}

// Does half of a read or a write in the child's place, on its own descriptor. 0: this one cannot be halved.
static int64_t half(const Watch *w, const struct seccomp_notif *q) {
    const uint64_t *a = (const uint64_t *)q->data.args;
    size_t n = (size_t)a[2] / 2;
    if (n == 0 || n > 1 << 20 || q->data.nr == SYS_readv || q->data.nr == SYS_writev) return 0;
    pid_t pid = is_main(w, (pid_t)q->pid) ? w->main : (pid_t)q->pid;
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int fd = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, (int)a[0], 0);
    char *bytes = malloc(n);
    struct iovec here = {bytes, n}, there = {(void *)(uintptr_t)a[1], n};
    ssize_t done = -1;
    bool reads = q->data.nr == SYS_read || q->data.nr == SYS_pread64,
         ready = bytes && fd >= 0 && is_ready(fd, reads);
    if (ready && reads) {
        done = q->data.nr == SYS_read ? read(fd, bytes, n) : pread(fd, bytes, n, (off_t)a[3]);
        here.iov_len = there.iov_len = done > 0 ? (size_t)done : 0;
        if (done > 0) done = process_vm_writev((pid_t)q->pid, &here, 1, &there, 1, 0);
    } else if (ready && process_vm_readv((pid_t)q->pid, &here, 1, &there, 1, 0) == (ssize_t)n)
        done = q->data.nr == SYS_write ? write(fd, bytes, n) : pwrite(fd, bytes, n, (off_t)a[3]);
    free(bytes);
    if (fd >= 0) close(fd);
    if (process >= 0) close(process);
    return done > 0 ? done : 0;
}

// brk doesn't fail with an error: it returns the heap's present end. 0: there is no heap yet.
static int64_t heap_end(pid_t pid) {
    char path[64], line[512];
    unsigned long end = 0, found = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        if (strstr(line, "[heap]") && sscanf(line, "%*x-%lx", &end) == 1) found = end;
    if (f) fclose(f);
    return (int64_t)found;
}

static void answer(const Watch *w, const struct seccomp_notif *q, int error, int64_t value) {
    struct seccomp_notif_resp r = {.id = q->id, .error = -error, .val = value};
    if (!error && !value) r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(w->asks, SECCOMP_IOCTL_NOTIF_SEND, &r); // fails if the child is gone by now
}

static bool is_nameless(const struct seccomp_notif *q) {
    return q->data.nr == SYS_openat && (q->data.args[2] & O_TMPFILE) == O_TMPFILE;
}

static void decide(Watch *w, const struct seccomp_notif *q) {
    Strike *s = w->s;
    s->nameless += is_nameless(q);
    if (s->named && is_nameless(q)) {
        answer(w, q, EOPNOTSUPP, 0);
        return;
    }
    char path[4400];
    StrikeKind kind = kind_of(w, q, path, sizeof path);
    int64_t value = 0;
    bool strikes = false;
    if (kind != STRIKE_KINDS) s->counts[kind]++;
    if (kind != STRIKE_KINDS && s->kinds >> kind & 1) {
        w->seen++;
        strikes = s->at && (w->seen == s->at || (s->lasting && w->seen > s->at));
    }
    if (strikes && s->way == STRIKE_HALF && !(value = half(w, q))) strikes = false;
    if (strikes && s->way == STRIKE_FAILS && q->data.nr == SYS_brk && !(value = heap_end(w->main)))
        strikes = false;
    if (!strikes && s->at && w->seen == s->at && !s->struck) w->seen--; // the next one that can be struck
    if (!strikes) {
        answer(w, q, 0, 0);
        return;
    }
    if (!s->struck)
        snprintf(s->where, sizeof s->where, "%s%s '%.250s'", is_main(w, (pid_t)q->pid) ? "" : "a child's ",
                 STRIKE_NAMES[kind], path);
    s->struck = true;
    if (s->way == STRIKE_KILLS) kill(-w->main, SIGKILL);
    else answer(w, q, value ? 0 : s->error, value);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Answers until the program has ended. Children that outlive it get no answers: their calls fail.
static void watch(Watch *w) {
    int ended = (int)syscall(SYS_pidfd_open, w->main, 0);
    double start = now();
    assert_true(ended >= 0);
    for (;;) {
        struct pollfd on[2] = {{.fd = w->asks, .events = POLLIN}, {.fd = ended, .events = POLLIN}};
        struct seccomp_notif q = {.id = 0};
        poll(on, 2, 1000);
        if (on[0].revents & POLLIN && ioctl(w->asks, SECCOMP_IOCTL_NOTIF_RECV, &q) == 0) decide(w, &q);
        if (on[1].revents & POLLIN) break;
        if (now() - start < MOST_SECONDS) continue;
        w->s->hung = true;
        kill(-w->main, SIGKILL);
        break;
    }
    close(ended);
}

static void become(unsigned kinds, const char *work, const char *const *argv, int socket, const int from[3]) {
    setpgid(0, 0);
    for (int i = 0; i < 3; i++)
        if (dup2(from[i], i) < 0) _exit(COULD_NOT_START);
    if (chdir(work)) _exit(COULD_NOT_START);
    int asks = kinds ? install(kinds) : 0;
    if (asks < 0 || (kinds && !pass(socket, asks))) _exit(COULD_NOT_START);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(COULD_NOT_START);
}

void strike_run(Strike *s, Child *c, const char *folder, const char *work, const char *out,
                const char *const *argv) {
    int sockets[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC),
                    to = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FILE *err = tmpfile();
    assert_true(null >= 0 && to >= 0 && err && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
    memset(s->counts, 0, sizeof s->counts);
    s->struck = s->hung = false;
    s->nameless = 0;
    bool watched = s->kinds != 0;
    Watch w = {.s = s, .folder = folder, .asks = -1, .main = fork()};
    assert_true(w.main >= 0);
    if (w.main == 0) become(s->kinds, work, argv, sockets[1], (const int[]){null, to, fileno(err)});
    close(sockets[1]);
    if (watched) w.asks = receive(sockets[0]);
    close(sockets[0]);
    *c = (Child){.code = 0};
    bool started = !watched || w.asks >= 0;
    if (started) watch(&w);
    if (w.asks >= 0) close(w.asks);
    int status;
    struct rusage used;
    assert_int_equal(wait4(w.main, &status, 0, &used), w.main);
    c->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (!started) c->code = COULD_NOT_START;
    char buffer[4096];
    rewind(err);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, err)) > 0;) text_add(&c->err, buffer, n);
    for (ssize_t n, at = 0; (n = pread(to, buffer, sizeof buffer, at)) > 0; at += n)
        text_add(&c->out, buffer, (size_t)n);
    fclose(err);
    close(to);
    close(null);
}

bool strike_possible(Error *why) {
    Strike s = {.kinds = 1};
    Child c;
    strike_run(&s, &c, "/proc", "/", "/dev/null", (const char *const[]){"true", NULL});
    bool ok = c.code == 0;
    child_release(&c);
    return ok || error_system(why, "this system does not let a process watch another's calls (seccomp)");
}
