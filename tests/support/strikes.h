// Every command of the program on small inputs, struck call by call (strike.h). After each strike: the
// program has ended with a line that names something, or with the right result; no file has its final name
// before it is whole; nothing temporary is left; stores are sound; and the same command again gives what an
// undisturbed one gives.
#pragma once

// Runs about `budget` strikes, spread over all commands, kinds and places; 0: every place of every command.
void strikes_fail(int budget); // calls that fail, or do half of their work
void strikes_kill(int budget); // death before a call that changes the disk

// `kills` kills at random moments of commands that take long, each gone on with until it ends.
void strikes_random(int kills);
