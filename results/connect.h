// Getting at the file: whoever may read it, wherever it lies.
#pragma once
#include "results/sql.h"

// Opens s->path by s->writable and s->vfs, so that its content can be asked for; nothing of it is changed.
bool store_connect(Store *s, Error *e);

// WAL where that works, a rollback journal where it does not. For what is known to be a store.
bool store_journal(Store *s, Error *e);

// Attaches another open store's file as `other`, in the way in which that one could open it.
bool store_attach(Store *s, const Store *other, Error *e);

// False with e filled: the file is not at its path any more, or another one is, so what is written is lost.
bool store_there(const Store *s, Error *e);

// False with e filled: it could only be read as a file that nobody changes, and somebody did.
bool store_unchanged(const Store *s, Error *e);
