#include "tests/support/tiles_trapped.h"

#include "engine/base/numbers.h"
#include "engine/cpu/kernels/features.h"

#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <ucontext.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64 };

// A thread's: the configuration in the layout of its 64 bytes, and the tiles' content.
typedef struct Trapped {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[TILES], more_bytes[8];
        uint8_t rows[TILES], more_rows[8];
    } config;
    unsigned char tile[TILES][ROWS][ROW_BYTES];
    long count;
} Trapped;

static _Thread_local Trapped own;

static void broken(const char *rule) {
    char line[128];
    int n = snprintf(line, sizeof line, "trapped tiles: %s\n", rule);
    if (write(2, line, (size_t)n) != n) _exit(4);
    _exit(3);
}

static void must(bool kept, const char *rule) {
    if (!kept) broken(rule);
}

// --- decoding

// VEX of three bytes, opcode, and what follows: registers by number, or an address.
typedef struct Instruction {
    int prefix; // 0 none, 1 66, 2 f3, 3 f2
    int opcode, mod, reg, rm, vvvv;
    bool has_sib;
    const unsigned char *address; // of the first row
    long stride;
    int length;
} Instruction;

static long register_of(const ucontext_t *u, int number) {
    static const int at[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                               REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return (long)u->uc_mcontext.gregs[at[number]];
}

static void decode_address(Instruction *i, const ucontext_t *u, const unsigned char *code, int vex) {
    int extra_index = vex & 0x40 ? 0 : 8, extra_base = vex & 0x20 ? 0 : 8, base = i->rm;
    long address = 0;
    int32_t far = 0;
    if (i->rm == 4) {
        int sib = code[i->length++], index = (sib >> 3 & 7) | extra_index;
        i->has_sib = true;
        base = sib & 7;
        if (index != 4) i->stride = register_of(u, index) * (1L << (sib >> 6));
    }
    bool alone = base == 5 && i->mod == 0; // four bytes from nowhere, or from the next instruction
    if (!alone) address = register_of(u, base | extra_base);
    if (i->mod == 1) address += (int8_t)code[i->length++];
    if (i->mod == 2 || alone) {
        memcpy(&far, code + i->length, sizeof far);
        i->length += 4;
        address += far;
    }
    if (alone && !i->has_sib) address += (long)code + i->length;
    i->address = (const unsigned char *)address;
}

static bool decode(Instruction *i, const ucontext_t *u) {
    const unsigned char *code = (const unsigned char *)u->uc_mcontext.gregs[REG_RIP];
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2 || (code[2] & 0x84) != 0) return false;
    *i = (Instruction){.prefix = code[2] & 3, .vvvv = ~code[2] >> 3 & 15, .opcode = code[3], .length = 5};
    i->mod = code[4] >> 6;
    i->reg = (code[4] >> 3 & 7) | (code[1] & 0x80 ? 0 : 8);
    i->rm = code[4] & 7;
    if (i->mod != 3) decode_address(i, u, code, code[1]);
    else i->rm |= code[1] & 0x20 ? 0 : 8;
    return i->opcode == 0x49 || i->opcode == 0x4b || i->opcode == 0x5c;
}

// --- the instructions

static int columns_of(int t) { return own.config.bytes[t] / 4; }

static void must_be_configured(int t) {
    must(own.config.palette == 1, "no tile is configured");
    must(t < TILES && own.config.rows[t] > 0 && own.config.bytes[t] > 0, "a tile that is not configured");
    must(own.config.bytes[t] % 4 == 0, "a row that is not whole words");
}

static void load_config(const void *from) {
    static const unsigned char nothing[16] = {0};
    memcpy(&own.config, from, sizeof own.config);
    memset(own.tile, 0, sizeof own.tile);
    must(own.config.palette <= 1, "an unknown palette");
    must(memcmp(own.config.reserved, nothing, 14) == 0 && own.config.start_row == 0, "reserved bytes");
    must(memcmp(own.config.more_bytes, nothing, 16) == 0 && memcmp(own.config.more_rows, nothing, 8) == 0,
         "more than eight tiles");
    for (int t = 0; t < TILES; t++) {
        must(own.config.rows[t] <= ROWS && own.config.bytes[t] <= ROW_BYTES, "a tile that is too large");
        must(!own.config.rows[t] == !own.config.bytes[t], "a tile of rows without bytes");
    }
}

static void load(const Instruction *i) {
    must(i->has_sib, "a load without a stride");
    must_be_configured(i->reg);
    memset(own.tile[i->reg], 0, sizeof own.tile[i->reg]);
    for (int r = 0; r < own.config.rows[i->reg]; r++)
        memcpy(own.tile[i->reg][r], i->address + r * i->stride, own.config.bytes[i->reg]);
}

static void store(const Instruction *i) {
    must(i->has_sib, "a store without a stride");
    must_be_configured(i->reg);
    for (int r = 0; r < own.config.rows[i->reg]; r++)
        memcpy((unsigned char *)(size_t)i->address + r * i->stride, own.tile[i->reg][r],
               own.config.bytes[i->reg]);
}

static float flush(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

static float half_at(int t, int row, int i) {
    uint16_t bits;
    memcpy(&bits, own.tile[t][row] + 2 * i, sizeof bits);
    return flush(bf16_to_f32(bits));
}

static void multiply(int sum, int a, int b) {
    must_be_configured(sum), must_be_configured(a), must_be_configured(b);
    must(sum != a && sum != b && a != b, "a product of a tile with itself");
    must(own.config.rows[sum] == own.config.rows[a], "a product's rows");
    must(columns_of(sum) == columns_of(b), "a product's columns");
    must(columns_of(a) == own.config.rows[b], "a product's pairs");
    for (int m = 0; m < own.config.rows[sum]; m++)
        for (int n = 0; n < columns_of(sum); n++) {
            float part[2] = {0, 0}, c;
            for (int k = 0; k < 2 * columns_of(a); k++)
                part[k % 2] = flush(fmaf(half_at(a, m, k), half_at(b, k / 2, 2 * n + k % 2), part[k % 2]));
            memcpy(&c, own.tile[sum][m] + 4 * n, sizeof c);
            c = flush(flush(c) + flush(part[0] + part[1]));
            memcpy(own.tile[sum][m] + 4 * n, &c, sizeof c);
        }
}

static bool execute(const Instruction *i) {
    enum { NONE, P66, F3, F2 };
    bool memory = i->mod != 3;
    if (i->opcode == 0x5c && i->prefix == F3 && !memory) multiply(i->reg, i->rm, i->vvvv);
    else if (i->vvvv != 0) return false;
    else if (i->opcode == 0x4b && (i->prefix == F2 || i->prefix == P66) && memory) load(i);
    else if (i->opcode == 0x4b && i->prefix == F3 && memory) store(i);
    else if (i->opcode == 0x49 && i->prefix == NONE && memory) load_config(i->address);
    else if (i->opcode == 0x49 && i->prefix == NONE && i->reg == 0 && i->rm == 0)
        memset(&own.config, 0, sizeof own.config);
    else if (i->opcode == 0x49 && i->prefix == F2 && !memory && i->rm == 0) {
        must_be_configured(i->reg);
        memset(own.tile[i->reg], 0, sizeof own.tile[i->reg]);
    } else return false;
    return true;
}

static void handle(int number, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    Instruction i;
    (void)number, (void)info;
    must(decode(&i, u) && execute(&i), "an instruction that is none of theirs");
    // They come in groups, and a trap takes longer than what it executes.
    do {
        u->uc_mcontext.gregs[REG_RIP] += i.length;
        own.count++;
    } while (decode(&i, u) && execute(&i));
}

bool tiles_trap(void) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    CpuFeatures f = cpu_features();
    own = (Trapped){.count = 0};
    return f.avx512_bf16 && f.avx512_vnni && f.tiles == TILES_NONE && sigaction(SIGILL, &action, NULL) == 0;
}

long tiles_trap_end(void) {
    signal(SIGILL, SIG_DFL);
    return own.count;
}
#else
bool tiles_trap(void) { return false; }
long tiles_trap_end(void) { return 0; }
#endif
