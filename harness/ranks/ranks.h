// The processes of one command: `mpirun -n R outpace ... --ranks mpi`. Rank 0 runs the command and is the
// only one that reads standard input and writes files, output and progress. The others decode what it tells
// them to (engine/decode/call.h), with the models that it has open.
#pragma once
#include "engine/core/ranks.h"
#include "engine/decode/method.h"

typedef enum { RANKS_NONE, RANKS_MPI } RanksOver;
extern const char *const ranks_over_names[];

// The row of --ranks in a command's options.
#define RANKS_OPTION(at)                                                                           \
    {                                                                                              \
        "ranks", ARG_CHOICE, at, .fallback = "none", .choices = ranks_over_names,                  \
                                 .help = "mpi: lookahead's ranks are the processes of mpirun -n R" \
    }

typedef struct Processes {
    struct Mpi *mpi; // NULL: this one only
    Team team;
} Processes;

// All ranks run the same program, or it fails.
bool processes_join(Processes *p, RanksOver over, Error *e);

// What EngineOptions.team is to be; NULL: this process only.
static inline const Team *processes_team(const Processes *p) { return p->mpi ? &p->team : NULL; }

// Whether this is another rank than 0: it calls processes_follow, which returns when rank 0 has left, and
// leaves, too.
static inline bool processes_follows(const Processes *p) { return p->mpi && p->team.rank > 0; }
bool processes_follow(Processes *p, Error *e);

// Rank 0, at the end, whatever happened.
void processes_leave(Processes *p);

// An error unless the method has as many ranks as there are processes, where there are several.
bool processes_fit(const Processes *p, const Method *method, Error *e);

// --- the speed of messages between them, as `outpace simulate --devices` takes it (ranks.c)

typedef struct LinkSpeed {
    double gather_s;    // a gather of 8 bytes a rank
    double latency_s;   // of one message: a gather takes ceil(log2 R) of them (simulate/scaling.h)
    double bytes_per_s; // that a rank receives
} LinkSpeed;

// All ranks call this; all learn the result. Takes a fraction of a second.
bool link_measure(const Team *team, LinkSpeed *out, Error *e);

// --- MPI as the team's messages (mpi.c). The library is opened when it is asked for, so the program needs
// none to build or to run: Open MPI, or one with the interface of MPICH (Intel MPI, MVAPICH, Cray MPICH).

typedef struct Mpi Mpi;

// Joins the processes that mpirun started. NULL with e filled, which names the fix.
Mpi *mpi_join(Error *e);
void mpi_leave(Mpi *m); // takes NULL; all ranks call it

Team mpi_team(Mpi *m);       // valid until mpi_leave
int mpi_local_rank(void);    // among the ranks of this machine, as the launcher says; 0 if it doesn't
bool mpi_version(Text *out); // "Open MPI v4.1.4, libmpi.so.40"; false: there is none
