-- Version 4: of a surface's points, the error of the numbers that stand there, and whether others disturbed their samples
-- (schema.sql has the table). NULL: an older program's.

ALTER TABLE surface ADD COLUMN low_ns REAL;        -- 95% of median_ns, by order: harness/machine/bench.h
ALTER TABLE surface ADD COLUMN high_ns REAL;
ALTER TABLE surface ADD COLUMN slowdown_low REAL;  -- 95% of slowdown, with the change of one token's time
ALTER TABLE surface ADD COLUMN slowdown_high REAL;
ALTER TABLE surface ADD COLUMN disturbed INTEGER;  -- samples that others disturbed; with a flag, too few others were left

PRAGMA user_version = 4;
