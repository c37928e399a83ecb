-- Version 7: of a surface's steps, how many sequences ran them together (bench --store --batch), each k rows of w + 1 tokens
-- over a context of its own; rows are the sum, slowdown is over one token of one. NULL: a part of a step, or an older
-- program's step, of one.

ALTER TABLE surface ADD COLUMN sequences INTEGER;

PRAGMA user_version = 7;
