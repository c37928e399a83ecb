// MPI as a team's messages. The library is opened when it is asked for, so the program needs none to build or
// to run: Open MPI, or one with the interface of MPICH (Intel MPI, MVAPICH, Cray MPICH).
#pragma once
#include "engine/core/ranks.h"

typedef struct Mpi Mpi;

// Joins the processes that mpirun started. NULL with e filled, which names the fix.
Mpi *mpi_join(Error *e);
void mpi_leave(Mpi *m); // takes NULL; all ranks call it

Team mpi_team(Mpi *m);       // valid until mpi_leave
int mpi_local_rank(void);    // among the ranks of this machine, as the launcher says; 0 if it doesn't
bool mpi_version(Text *out); // "Open MPI v4.1.4, libmpi.so.40"; false: there is none
