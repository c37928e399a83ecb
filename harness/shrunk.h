// A mapped file that shrinks under us: one line and exit code 2 in place of death by SIGBUS.
#pragma once

// From now on, touching a page that a mapped file no longer has ends the program with a line on stderr that
// names the file. Costs nothing until then.
void shrunk_catch(void);
