// For programs that are linked with the stubs of `stubs`: functions that a C library of 2018 (2.28) doesn't
// have, by those that it has. The headers that everything was compiled with are newer.
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// --- stat: until 2.33 the headers called these, with the number of the layout of struct stat.

#ifdef __x86_64__
enum { LAYOUT = 1 };
#else
enum { LAYOUT = 0 };
#endif
int __xstat(int layout, const char *path, struct stat *out);
int __lxstat(int layout, const char *path, struct stat *out);
int __fxstat(int layout, int fd, struct stat *out);
int __fxstatat(int layout, int fd, const char *path, struct stat *out, int flags);

#define ALSO(name) __attribute__((alias(name)))
int stat(const char *path, struct stat *out) { return __xstat(LAYOUT, path, out); }
int lstat(const char *path, struct stat *out) { return __lxstat(LAYOUT, path, out); }
int fstat(int fd, struct stat *out) { return __fxstat(LAYOUT, fd, out); }
int fstatat(int fd, const char *path, struct stat *out, int flags) {
    return __fxstatat(LAYOUT, fd, path, out, flags);
}
int stat64(const char *path, struct stat64 *out) ALSO("stat");
int lstat64(const char *path, struct stat64 *out) ALSO("lstat");
int fstat64(int fd, struct stat64 *out) ALSO("fstat");
int fstatat64(int fd, const char *path, struct stat64 *out, int flags) ALSO("fstatat");

// --- the start: a program linked against 2.34 or newer leaves its constructors to the C library, whose older
// versions leave them to the program. Given a function, every version calls it instead.
// (--wrap=__libc_start_main)

typedef int Main(int argc, char **argv, char **environment);
extern Main *__init_array_start[], *__init_array_end[];
void _init(void);

static int construct(int argc, char **argv, char **environment) {
    _init();
    for (Main **next = __init_array_start; next < __init_array_end; next++) (*next)(argc, argv, environment);
    return 0;
}

int __real___libc_start_main(Main *program, int argc, char **argv, Main *init, void (*fini)(void),
                             void (*loader_fini)(void), void *stack_end);
int __wrap___libc_start_main(Main *program, int argc, char **argv, Main *init, void (*fini)(void),
                             void (*loader_fini)(void), void *stack_end);
int __wrap___libc_start_main(Main *program, int argc, char **argv, Main *init, void (*fini)(void),
                             void (*loader_fini)(void), void *stack_end) {
    (void)init; // NULL
    return __real___libc_start_main(program, argc, argv, construct, fini, loader_fini, stack_end);
}

// --- numbers: since 2.38 the headers call these, which read binary numbers ("0b1"), too. The old names have
// labels of their own here, since those headers would lead them back.

#define READS(type, name)                                                   \
    type old_##name(const char *text, char **end, int base) __asm__(#name); \
    type __isoc23_##name(const char *text, char **end, int base);           \
    type __isoc23_##name(const char *text, char **end, int base) { return old_##name(text, end, base); }
READS(long, strtol)
READS(unsigned long, strtoul)
READS(long long, strtoll)
READS(unsigned long long, strtoull)

#define SCANS(name, from)                                              \
    int __isoc99_v##name(from, const char *format, va_list arguments); \
    int __isoc23_##name(from, const char *format, ...);                \
    int __isoc23_##name(from, const char *format, ...) {               \
        va_list arguments;                                             \
        va_start(arguments, format);                                   \
        int count = __isoc99_v##name(source, format, arguments);       \
        va_end(arguments);                                             \
        return count;                                                  \
    }
SCANS(sscanf, const char *source)
SCANS(fscanf, FILE *source)

// --- C++: its library asks whether there is one thread only (since 2.32; 0: there may be more), and the
// unwinder looks for frames here (since 2.35). Nothing in this program throws.

char __libc_single_threaded;

int _dl_find_object(void *address, void *found);
int _dl_find_object(void *address, void *found) {
    (void)address, (void)found;
    return -1;
}
