// SQLite's file system with one call that fails: the n-th of those that change a file, and nothing after it.
#pragma once
#include <stdbool.h>

// Registers it, once; its name is for StoreOptions.vfs.
const char *fault_vfs(void);

// The n-th write, sync, truncation or deletion from now fails, and where `dead` all that follow do too, as if
// the process had been killed there. `full`: it says that the disk is full; else that it broke. 0: none
// fails.
void fault_vfs_after(int n, bool full, bool dead);
bool fault_vfs_seen(void);
int fault_vfs_syncs(void); // so far

// From now on no memory can be shared, as on a network's file system: WAL cannot work.
void fault_vfs_apart(bool apart);
