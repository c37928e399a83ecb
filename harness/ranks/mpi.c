// The few functions of MPI that a team needs, by dlopen. Constants and handles differ: Open MPI's handles are
// addresses of symbols; in MPICH's interface they are ints, passed here as pointers (the callee reads the
// lower half of the register).
#include "harness/ranks/ranks.h"

#include "engine/base/memory.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct Mpi {
    void *library;
    const char *file;
    void *world, *byte, *ignore; // MPI_COMM_WORLD, MPI_BYTE, MPI_STATUS_IGNORE
    int rank, count;
    int (*version)(char *text, int *length);
    int (*init)(int *argc, char ***argv, int required, int *provided);
    int (*finalize)(void);
    int (*comm_rank)(void *comm, int *rank);
    int (*comm_size)(void *comm, int *size);
    int (*allgather)(const void *from, int count, void *type, void *to, int each, void *to_type, void *comm);
    int (*send)(const void *from, int count, void *type, int to, int tag, void *comm);
    int (*receive)(void *to, int count, void *type, int from, int tag, void *comm, void *status);
    int (*probe)(int from, int tag, void *comm, int *flag, void *status);
};

static const char INSTALL[] = "MPI is not installed: ./setup mpi installs it (Debian: apt-get install "
                              "openmpi-bin); $OUTPACE_MPI names a libmpi.so elsewhere";

// The launcher's own library first, if both are there.
static bool open_library(Mpi *m) {
    static const char *const files[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so"};
    const char *given = getenv("OUTPACE_MPI");
    size_t first = !getenv("OMPI_COMM_WORLD_SIZE") && getenv("PMI_SIZE") ? 1 : 0;
    enum { COUNT = sizeof files / sizeof *files };
    for (size_t i = 0; i < COUNT && !m->library; i++) {
        m->file = given && *given ? given : files[(i + first) % COUNT];
        m->library = dlopen(m->file, RTLD_NOW | RTLD_GLOBAL); // Open MPI's plugins use its symbols
    }
    return m->library != NULL;
}

static bool find_functions(Mpi *m) {
    const struct {
        const char *name;
        void *function; // where its address goes
    } list[] = {
        {"MPI_Get_library_version", &m->version},
        {"MPI_Init_thread", &m->init},
        {"MPI_Finalize", &m->finalize},
        {"MPI_Comm_rank", &m->comm_rank},
        {"MPI_Comm_size", &m->comm_size},
        {"MPI_Allgather", &m->allgather},
        {"MPI_Send", &m->send},
        {"MPI_Recv", &m->receive},
        {"MPI_Iprobe", &m->probe},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        void *symbol = dlsym(m->library, list[i].name);
        if (!symbol) return false;
        memcpy(list[i].function, &symbol, sizeof symbol);
    }
    return true;
}

// The values of mpi.h in Open MPI 4 and 5, and of the interface that MPICH 3.1 and its relatives share.
static void find_handles(Mpi *m) {
    m->world = dlsym(m->library, "ompi_mpi_comm_world");
    m->byte = dlsym(m->library, "ompi_mpi_byte");
    m->ignore = NULL;
    if (m->world) return;
    m->world = (void *)(uintptr_t)0x44000000;
    m->byte = (void *)(uintptr_t)0x4c00010d;
    m->ignore = (void *)(uintptr_t)1;
}

static bool open_mpi(Mpi *m, Error *e) {
    *m = (Mpi){0};
    if (!open_library(m)) return error_input(e, "%s", INSTALL);
    if (!find_functions(m)) {
        dlclose(m->library);
        return error_input(e, "'%s' is not MPI: it lacks functions", m->file);
    }
    find_handles(m);
    return true;
}

bool mpi_version(Text *out) {
    char text[8192] = ""; // the most of any MPI
    int length;
    Mpi m;
    if (!open_mpi(&m, NULL)) return false;
    m.version(text, &length);
    for (char *tab = text; (tab = strchr(tab, '\t'));) *tab = ' ';
    text_printf(out, "%.*s, %s", (int)strcspn(text, ",\n"), text, m.file);
    dlclose(m.library);
    return true;
}

static int number_in(const char *const *names) {
    for (; *names; names++)
        if (getenv(*names)) return (int)strtol(getenv(*names), NULL, 10);
    return -1;
}

int mpi_local_rank(void) {
    int n = number_in(
        (const char *const[]){"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", NULL});
    return n > 0 ? n : 0;
}

Mpi *mpi_join(Error *e) {
    enum { FUNNELED = 1 }; // only the thread that initialises calls MPI; in both interfaces
    Mpi *m = mem_new(1, sizeof *m);
    static const char *const LAUNCHED[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID",
                                           NULL};
    int level;
    if (!open_mpi(m, e)) goto failed;
    if (number_in(LAUNCHED) < 0) {
        error_input(e, "--ranks mpi needs a launcher: mpirun -n 2 outpace ...");
        goto failed;
    }
    if (m->init(NULL, NULL, FUNNELED, &level) != 0) {
        error_system(e, "'%s' cannot start: MPI_Init_thread failed", m->file);
        goto failed;
    }
    m->comm_rank(m->world, &m->rank);
    m->comm_size(m->world, &m->count);
    return m;
failed:
    mem_free(m);
    return NULL;
}

// The library stays open: it may have threads.
void mpi_leave(Mpi *m) {
    if (m) m->finalize();
    mem_free(m);
}

static bool gather(void *self, const void *mine, void *all, size_t bytes, Error *e) {
    Mpi *m = self;
    int n = (int)bytes;
    return m->allgather(mine, n, m->byte, all, n, m->byte, m->world) == 0 ||
           error_system(e, "MPI_Allgather failed");
}

// --- rare messages: without spinning at the receiver, as MPI does

enum { TAG = 1, CHUNK = 1 << 30 };

static bool send_all(Mpi *m, const Text *message) {
    uint64_t length = message->length;
    for (int rank = 1; rank < m->count; rank++) {
        if (m->send(&length, sizeof length, m->byte, rank, TAG, m->world) != 0) return false;
        for (uint64_t at = 0; at < length; at += CHUNK) {
            uint64_t left = length - at;
            if (m->send(message->data + at, (int)(left < CHUNK ? left : CHUNK), m->byte, rank, TAG,
                        m->world) != 0)
                return false;
        }
    }
    return true;
}

static bool receive_all(Mpi *m, Text *message) {
    const struct timespec nap = {.tv_nsec = 200000};
    uint64_t length;
    for (int flag = 0; !flag; flag ? 0 : nanosleep(&nap, NULL))
        if (m->probe(0, TAG, m->world, &flag, m->ignore) != 0) return false;
    if (m->receive(&length, sizeof length, m->byte, 0, TAG, m->world, m->ignore) != 0) return false;
    LOCAL_MEMORY char *data = mem_new(length + 1, 1);
    bool ok = true;
    for (uint64_t at = 0; ok && at < length; at += CHUNK) {
        uint64_t left = length - at;
        ok = m->receive(data + at, (int)(left < CHUNK ? left : CHUNK), m->byte, 0, TAG, m->world,
                        m->ignore) == 0;
    }
    text_clear(message);
    text_add(message, data, length);
    return ok;
}

static bool tell(void *self, Text *message, Error *e) {
    Mpi *m = self;
    return (m->rank == 0 ? send_all(m, message) : receive_all(m, message)) ||
           error_system(e, "MPI cannot send from rank 0");
}

Team mpi_team(Mpi *m) { return (Team){m->rank, m->count, m, gather, tell}; }
