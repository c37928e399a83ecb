// The store: every run, point, prompt and step in one SQLite file, with what it was measured on.
//
// Nothing lives here yet. What will: schema.sql, store.c (the only file that sees sqlite3.h), views, exports,
// and the published numbers of the papers in published/. May include engine/base only.
#pragma once
