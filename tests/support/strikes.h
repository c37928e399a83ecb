// Every command of the program on small inputs, struck call by call (strike.h). After each strike: the
// program has ended with a line that names something, or with the right result; files get their final names
// only when they're whole; temporary files are gone; stores are sound; and the same command again gives the
// result of an undisturbed one.
#pragma once

// Runs about `budget` strikes, spread over all commands, kinds and places; 0: every place of every command.
void strikes_fail(int budget); // calls that fail, or do half of their work
// Death before a call that changes the disk, and with a budget a few kills at random moments.
void strikes_kill(int budget);

// `kills` kills at random moments of each command that takes long, which then goes on until it ends.
void strikes_random(int kills);
