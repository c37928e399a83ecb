// Features come from bits of CPUID, and of XCR0 for the registers that the system saves; never from the
// processor's model number, which virtual machines hide. Everything here runs on any processor, and asks
// again at every call: nothing is remembered.
#include "engine/cpu/kernels/features.h"

#include "engine/base/text.h"
#include "engine/cpu/kernels/ops.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// --- features

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>

enum { SAVES_AVX = 0x06, SAVES_AVX512 = 0xe6, SAVES_TILES = 0x60000 };
enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AVX_VNNI = 1 << 4 };
enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; // arch_prctl's ARCH_REQ_XCOMP_PERM, and the state

static bool has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

CpuFeatures cpu_features_of(const CpuWords *w) {
    CpuFeatures f = {0};
    f.avx2 = has(w->saved, SAVES_AVX) && has(w->leaf1_ecx, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C) &&
             has(w->leaf7_ebx, bit_AVX2);
    f.avx_vnni = f.avx2 && has(w->leaf7_1_eax, AVX_VNNI);
    f.avx512 = f.avx2 && has(w->saved, SAVES_AVX512) &&
               has(w->leaf7_ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
    f.avx512_vnni = f.avx512 && has(w->leaf7_ecx, bit_AVX512VNNI);
    f.avx512_bf16 = f.avx512 && has(w->leaf7_1_eax, bit_AVX512BF16);
    if (f.avx512_bf16 && f.avx512_vnni && has(w->leaf7_edx, AMX_BF16 | AMX_TILE))
        f.tiles = has(w->saved, SAVES_TILES) ? TILES_GRANTED : TILES_UNSAVED;
    return f;
}

static CpuWords read_words(void) {
    CpuWords w = {0};
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d)) w.leaf1_ecx = c;
    if (has(w.leaf1_ecx, bit_OSXSAVE)) __asm__ volatile("xgetbv" : "=a"(w.saved), "=d"(d) : "c"(0));
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) w.leaf7_ebx = b, w.leaf7_ecx = c, w.leaf7_edx = d;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) w.leaf7_1_eax = a;
    return w;
}

CpuFeatures cpu_features(void) {
    CpuWords w = read_words();
    CpuFeatures f = cpu_features_of(&w);
    if (f.tiles == TILES_GRANTED && syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) != 0)
        f.tiles = TILES_DENIED;
    return f;
}
#else
CpuFeatures cpu_features_of(UNUSED const CpuWords *w) { return (CpuFeatures){0}; }
#endif

#if defined(__aarch64__)
#include <sys/auxv.h>

enum { CAPABLE_BF16 = 1 << 14 }; // Linux's HWCAP2_BF16

CpuFeatures cpu_features(void) {
    return (CpuFeatures){.neon_bf16 = (getauxval(AT_HWCAP2) & CAPABLE_BF16) != 0};
}
#elif !defined(__x86_64__)
CpuFeatures cpu_features(void) { return (CpuFeatures){0}; }
#endif

// --- a check in a process of its own

// Runs the check and exits by its result. If the check is fatal, no handler of ours or of a sanitizer runs,
// and no core is written to disk.
static void run_and_leave(bool (*check)(void)) {
    static const int fatal[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP};
    for (unsigned i = 0; i < sizeof fatal / sizeof *fatal; i++) signal(fatal[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    _exit(check() ? 0 : 1);
}

Trial trial_run(bool (*check)(void)) {
    int status;
    pid_t got, child = fork();
    if (child < 0) return TRIAL_NOT_RUN;
    if (child == 0) run_and_leave(check);
    do got = waitpid(child, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0) return TRIAL_NOT_RUN; // SIGCHLD is ignored: the system drops exit statuses
    if (!WIFEXITED(status)) return TRIAL_KILLED;
    return WEXITSTATUS(status) == 0 ? TRIAL_PASSED : TRIAL_FAILED;
}

// --- tiles

static Trial try_tiles(TilesState state) {
    return state == TILES_GRANTED ? trial_run(cpu_amx_works) : TRIAL_NOT_RUN;
}

bool tiles_usable(void) { return try_tiles(cpu_features().tiles) == TRIAL_PASSED; }

const char *tiles_refused(void) {
    TilesState state = cpu_features().tiles;
    return tiles_refusal(state, try_tiles(state));
}

#define NOT_USED "the kernels 'amx' are not used: this processor "

const char *tiles_refusal(TilesState state, Trial tried) {
    static const char *const by_state[] = {
        [TILES_UNSAVED] =
            NOT_USED "reports matrix tiles, but the system does not save their registers; Linux "
                     "does from 5.16 on, in a virtual machine if its settings pass tiles on",
        [TILES_DENIED] = NOT_USED "has matrix tiles, but the system refuses them to this process; let its "
                                  "seccomp profile allow arch_prctl",
        [TILES_GRANTED] = NULL,
    };
    static const char *const by_trial[] = {
        [TRIAL_FAILED] =
            NOT_USED "reports matrix tiles, but they multiply wrongly; turn them off in the virtual "
                     "machine's settings",
        [TRIAL_KILLED] =
            NOT_USED "reports matrix tiles, but their instructions kill the process; turn them off in "
                     "the virtual machine's settings",
        [TRIAL_NOT_RUN] =
            NOT_USED "has matrix tiles that could not be tried in a process of their own; allow "
                     "one more process, and do not ignore SIGCHLD",
    };
    return state == TILES_GRANTED ? by_trial[tried] : by_state[state];
}

// --- kernel sets

bool kernel_set_always(void) { return true; }
bool kernel_set_avx2(void) { return cpu_features().avx2; }
bool kernel_set_avx_vnni(void) { return cpu_features().avx_vnni; }
bool kernel_set_avx512(void) { return cpu_features().avx512; }
bool kernel_set_avx512_vnni(void) { return cpu_features().avx512_vnni; }
bool kernel_set_avx512_bf16(void) { // every processor with bf16 has VNNI, but a virtual machine may hide it
    CpuFeatures f = cpu_features();
    return f.avx512_bf16 && f.avx512_vnni;
}
bool kernel_set_neon_bf16(void) { return cpu_features().neon_bf16; }

// The last one available; the first always is.
static const KernelSet *best(const KernelSet *sets, size_t count) {
    size_t i = count - 1;
    while (!sets[i].available()) i--;
    return &sets[i];
}

// Writes the error that lists all sets; returns NULL.
static const void *unknown_set(const KernelSet *sets, size_t count, const char *name, Error *e) {
    Text list = {0};
    for (size_t i = 0; i < count; i++)
        text_printf(&list, "%s%s%s", i ? ", " : "", *sets[i].name,
                    sets[i].available() ? "" : " (not on this processor)");
    error_input(e, "there is no kernel set '%s': choose one of %s", name, text_get(&list));
    text_release(&list);
    return NULL;
}

const void *kernel_set_find(const KernelSet *sets, size_t count, const char *name, Error *e) {
    if (!name || !name[0]) return best(sets, count)->kernels;
    for (size_t i = 0; i < count; i++)
        if (strcmp(*sets[i].name, name) == 0) {
            if (sets[i].available()) return sets[i].kernels;
            error_input(e, "this processor does not have the kernel set '%s'; leave it out to use '%s'", name,
                        *best(sets, count)->name);
            return NULL;
        }
    return unknown_set(sets, count, name, e);
}
