// Reads text files of the kernel without trust: a missing file, field or number leaves its field empty.
#include "harness/machine/machine.h"

#include "engine/base/clock.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "harness/cli/version.h"

#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { SMALL_FILE = 8192, MAX_PROCESSES = 4096, LOOK_MICROSECONDS = 100000 };

// Features that decide which kernels run, as the kernel spells them.
static const char *const FEATURES[] = {"avx2",     "fma",         "avx_vnni",    "avx512f",
                                       "avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile",
                                       "amx_bf16", "amx_int8",    "asimd",       "bf16"};

// The value after "key<blanks><separator>" on the first line that starts with key; NULL if there is none.
static const char *value_of(const char *text, const char *key, char separator) {
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) != 0) continue;
        const char *p = line + n + strspn(line + n, " \t");
        if (*p == separator) return p + 1 + strspn(p + 1, " \t\"");
    }
    return NULL;
}

static void copy_line(char *out, size_t size, const char *from) {
    size_t n = from ? strcspn(from, "\n\"") : 0;
    snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), from ? from : "");
}

static bool has_word(const char *line, const char *word) {
    size_t n = strlen(word), end = strcspn(line, "\n");
    for (const char *p = line; (p = strstr(p, word)) && p < line + end; p += n)
        if ((p == line || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\n' || p[n] == 0)) return true;
    return false;
}

void machine_parse_cpuinfo(Machine *m, const char *text) {
    copy_line(m->cpu, sizeof m->cpu, value_of(text, "model name", ':'));
    const char *flags = value_of(text, "flags", ':');
    if (!*m->cpu) { // an Arm has two numbers instead of a name
        char maker[16], part[16];
        copy_line(maker, sizeof maker, value_of(text, "CPU implementer", ':'));
        copy_line(part, sizeof part, value_of(text, "CPU part", ':'));
        if (*maker && *part) snprintf(m->cpu, sizeof m->cpu, "Arm, implementer %s, part %s", maker, part);
    }
    if (!flags) flags = value_of(text, "Features", ':');
    m->isa[0] = 0;
    for (size_t i = 0; flags && i < sizeof FEATURES / sizeof *FEATURES; i++) {
        size_t n = strlen(m->isa);
        if (has_word(flags, FEATURES[i]))
            snprintf(m->isa + n, sizeof m->isa - n, "%s%s", n ? " " : "", FEATURES[i]);
    }
    m->virtual_machine = flags && has_word(flags, "hypervisor");
}

// "32K", "1M" as sysfs writes them.
static size_t parse_size(const char *s) {
    char *end;
    size_t n = strtoull(s, &end, 10);
    return *end == 'K' ? n << 10 : *end == 'M' ? n << 20 : n;
}

static void read_caches(Machine *m) {
    for (int i = 0; i < 8; i++) {
        static const char *const FACTS[] = {"type", "level", "size"};
        char path[128], fact[3][32], *type = fact[0], *level = fact[1], *size = fact[2];
        for (int k = 0; k < 3; k++) {
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, FACTS[k]);
            system_text(path, fact[k], sizeof fact[k]);
        }
        if (strcmp(type, "Instruction") == 0) continue;
        if (level[0] == '1') m->l1d = parse_size(size);
        if (level[0] == '2') m->l2 = parse_size(size);
        if (level[0] == '3') m->l3 = parse_size(size);
    }
}

typedef struct {
    int pid;
    unsigned long long ticks;
} Usage;

// The user and system time of every process, in clock ticks.
static int read_usage(Usage *out) {
    DIR *d = opendir("/proc");
    int n = 0;
    for (struct dirent *f; d && n < MAX_PROCESSES && (f = readdir(d));) {
        char path[300], text[1024], *end;
        long pid = strtol(f->d_name, &end, 10);
        if (*end || pid <= 0) continue;
        snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        system_text(path, text, sizeof text);
        const char *p = strrchr(text, ')'); // the name may hold anything, even ')'
        unsigned long long user, system;
        if (p && sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) == 2)
            out[n++] = (Usage){(int)pid, user + system};
    }
    if (d) closedir(d);
    return n;
}

// Processes that used at least a quarter of a core between two looks.
static int count_busy(void) {
    LOCAL_MEMORY Usage *before = mem_new(2 * MAX_PROCESSES, sizeof *before);
    Usage *after = before + MAX_PROCESSES;
    int n = read_usage(before), busy = 0;
    usleep(LOOK_MICROSECONDS);
    int m = read_usage(after);
    unsigned long long share = (unsigned long long)sysconf(_SC_CLK_TCK) * LOOK_MICROSECONDS / 4000000;
    for (int i = 0; i < m; i++) {
        int k = 0;
        while (k < n && before[k].pid != after[i].pid) k++;
        unsigned long long was = k < n ? before[k].ticks : 0;
        if (after[i].pid != getpid() && was && after[i].ticks >= was + (share ? share : 1)) busy++;
    }
    return busy;
}

void machine_read(Machine *m) {
    char text[16384];
    struct utsname name;
    double load[1] = {0};
    cpu_set_t usable;
    *m = (Machine){.cores = 1, .cores_present = get_nprocs()};
    if (sched_getaffinity(0, sizeof usable, &usable) == 0) m->cores = CPU_COUNT(&usable);
    system_text("/proc/cpuinfo", text, sizeof text);
    machine_parse_cpuinfo(m, text);
    system_text("/etc/os-release", text, sizeof text);
    copy_line(m->system, sizeof m->system, value_of(text, "PRETTY_NAME", '='));
    system_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", m->governor, sizeof m->governor);
    if (uname(&name) == 0) {
        snprintf(m->kernel, sizeof m->kernel, "%s", name.release);
        snprintf(m->host, sizeof m->host, "%s", name.nodename);
    }
    read_caches(m);
    system_text("/proc/meminfo", text, sizeof text);
    m->memory = system_number(text, "MemTotal:", 0) << 10;
    m->available = system_memory();
    limits_read("", &m->limits);
    if (getloadavg(load, 1) == 1) m->load = load[0];
    m->refused = engine_kernels_refused();
    m->busy_others = count_busy();
}

void machine_name(const Machine *m, Text *out) {
    text_printf(out, "%s, %s, %d cores, %zu GB", m->cpu, m->isa, m->cores, m->memory >> 30);
    if (m->processes) text_printf(out, ", %d processes", m->processes);
}

void machine_warnings(const Machine *m, Text *out) {
    if (m->governor[0] && strcmp(m->governor, "performance") != 0)
        text_printf(out, "the CPU governor is '%s': clocks change while measuring; set it to 'performance'\n",
                    m->governor);
    if (m->busy_others)
        text_printf(
            out,
            "%d other process%s used the processor just now: stop them, go before them by 'chrt -f 10' "
            "(as root), leave them a core by --threads 1, or trust only ratios\n",
            m->busy_others, m->busy_others == 1 ? "" : "es");
    if (m->load > 0.5 * m->cores)
        text_printf(out, "the load average is %.1f on %d cores\n", m->load, m->cores);
    if (m->virtual_machine)
        text_puts(out, "this is a virtual machine: neighbours may take bandwidth, trust ratios of one run\n");
    if (m->refused) text_printf(out, "%s\n", m->refused);
    if (m->cores < m->cores_present)
        text_printf(out, "this process may use %d of %d cores\n", m->cores, m->cores_present);
    if (m->limits.cores > 0 && m->limits.cores < m->cores)
        text_printf(out,
                    "this container gets the time of %.3g cores and is stopped for the rest of each "
                    "period: times jump\n",
                    m->limits.cores);
}

json_t *machine_json(const Machine *m) {
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:f, s:i, s:b, s:o, s:o}", "host",
        m->host, "system", m->system, "kernel", m->kernel, "cpu", m->cpu, "isa", m->isa, "governor",
        m->governor, "cores", m->cores, "cores_present", m->cores_present, "l1d_bytes", (json_int_t)m->l1d,
        "l2_bytes", (json_int_t)m->l2, "l3_bytes", (json_int_t)m->l3, "memory_bytes", (json_int_t)m->memory,
        "available_bytes", (json_int_t)m->available, "load", m->load, "busy_others", m->busy_others,
        "virtual_machine", m->virtual_machine, "quota_cores", json_number(m->limits.cores),
        "memory_limit_bytes",
        m->limits.memory < SIZE_MAX ? json_integer((json_int_t)m->limits.memory) : json_null());
}

size_t machine_peak_memory(void) {
    char text[SMALL_FILE];
    system_text("/proc/self/status", text, sizeof text);
    return system_number(text, "VmHWM:", 0) << 10;
}

size_t machine_huge_pages(void) {
    static const char *const keys[] = {"AnonHugePages:", "FilePmdMapped:", "ShmemPmdMapped:"};
    char text[SMALL_FILE];
    size_t bytes = 0;
    system_text("/proc/self/smaps_rollup", text, sizeof text);
    for (int i = 0; i < 3; i++) bytes += system_number(text, keys[i], 0) << 10;
    return bytes;
}

// --- gauges of GPUs --------------------------------------------------------------------------------------

static const char *known(const char *text) { return text[0] ? text : NULL; }

void gauges_ceilings(const char *device, const Ceilings *c, double peak, const char *kernels,
                     StoreEnvironment *on) {
    static const char LIBRARY[] = "cuBLASLt "; // in "sm_90, cuBLASLt 13.1.0"
    Gauge g;
    if (engine_gauge(device, 0, &g, NULL)) {
        const char *library = kernels ? strstr(kernels, LIBRARY) : NULL;
        on->cublas = library ? library + sizeof LIBRARY - 1 : NULL;
        on->gpu_bandwidth = c->bytes_per_s;
        on->gpu_peak = peak;
        return;
    }
    on->isa = c->isa;
    on->threads = c->threads;
    on->bandwidth = c->bytes_per_s;
    on->peak = peak;
}

json_t *gauges_json(const Gauge *g) {
    return json_pack("{s:s?, s:s?, s:s?, s:s?, s:s?, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     known(g->name), "uuid", known(g->uuid), "driver", known(g->driver), "cuda",
                     known(g->runtime), "throttle", known(g->throttle), "memory_bytes", (json_int_t)g->memory,
                     "clock_mhz", json_number(g->clock_mhz), "most_clock_mhz", json_number(g->most_clock_mhz),
                     "memory_clock_mhz", json_number(g->memory_clock_mhz), "power_w", json_number(g->power_w),
                     "power_limit_w", json_number(g->power_limit_w), "temperature_c",
                     json_number(g->temperature_c));
}

bool gauges_reading(const char *gpus, int card, const char *moment, GaugeReading *g, StoreReading *out) {
    const char *name = gpus;
    if (!engine_gauge(gpus, card, &g->gauge, NULL)) return false;
    for (int i = 0; i < card && *name; i++) name += strcspn(name, ",") + (strchr(name, ',') != NULL);
    snprintf(g->device, sizeof g->device, "%.*s", (int)strcspn(name, ","), name);
    *out = (StoreReading){.at = clock_wall(),
                          .moment = moment,
                          .device = g->device,
                          .throttle = known(g->gauge.throttle),
                          .clock_mhz = g->gauge.clock_mhz,
                          .memory_clock_mhz = g->gauge.memory_clock_mhz,
                          .power_w = g->gauge.power_w,
                          .temperature_c = g->gauge.temperature_c,
                          .load = NAN};
    return true;
}

// --- the environment of a run ----------------------------------------------------------------------------

static void add_name(char *all, size_t size, const char *name) {
    size_t n = strlen(all);
    snprintf(all + n, size - n, "%s%s", n ? " + " : "", name);
}

void environment_open(Environment *out, const Machine *m, const char *device) {
    json_auto_t *libraries = libraries_json();
    *out = (Environment){.libraries = json_text(libraries, 0)};
    out->on = (StoreEnvironment){.version = version_text(),
                                 .compiler = version_compiler(),
                                 .libraries = out->libraries,
                                 .host = m->host,
                                 .system = m->system,
                                 .kernel = m->kernel,
                                 .cpu = m->cpu,
                                 .isa = m->isa,
                                 .governor = m->governor,
                                 .cores = m->cores,
                                 .virtual_machine = m->virtual_machine,
                                 .l1d = (int64_t)m->l1d,
                                 .l2 = (int64_t)m->l2,
                                 .l3 = (int64_t)m->l3,
                                 .memory = (int64_t)m->memory};
    Gauge card;
    if (!device || !engine_gauge(device, 0, &out->gpu, NULL)) return;
    out->on.gpu_memory = 0; // the sum over all cards
    for (int i = 0; engine_gauge(device, i, &card, NULL); i++) {
        add_name(out->gpus, sizeof out->gpus, card.name);
        add_name(out->uuids, sizeof out->uuids, card.uuid);
        out->on.gpu_memory += (int64_t)card.memory;
    }
    out->on.gpu = known(out->gpus);
    out->on.gpu_uuid = known(out->uuids);
    out->on.driver = known(out->gpu.driver);
    out->on.cuda = known(out->gpu.runtime);
}

void environment_release(Environment *v) {
    mem_free(v->libraries);
    *v = (Environment){0};
}
