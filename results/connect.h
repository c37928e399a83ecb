// Getting at the file: whoever may read it, wherever it lies.
#pragma once
#include "results/sql.h"

// Opens s->path by s->writable and s->vfs, so that its content can be asked for; nothing of it is changed.
bool store_connect(Store *s, Error *e);

// WAL where that works, a rollback journal where it does not. For what is known to be a store.
bool store_journal(Store *s, Error *e);
