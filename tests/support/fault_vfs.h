// SQLite's file system with one call that fails: the n-th of those that change a file, and nothing after it.
#pragma once
#include <stdbool.h>

// Registers it, once; its name is for StoreOptions.vfs.
const char *fault_vfs(void);

// The n-th write, sync, truncation or deletion from now fails, and if `dead` all later ones do too, as if the
// process had been killed there. `full`: the error is a full disk; else a broken one. 0: none fails.
void fault_vfs_after(int n, bool full, bool dead);
bool fault_vfs_seen(void);
int fault_vfs_syncs(void); // so far

// From now on memory can't be shared, as on a network file system: WAL can't work.
void fault_vfs_apart(bool apart);
