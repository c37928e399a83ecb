-- Version 3: of a surface's points, where the model's weights lay, and whether the machine stayed what it was while the
-- grid of a context was measured (schema.sql has the table; the view `drifted` says what is more than noise). And no
-- estimate that is none.

ALTER TABLE surface ADD COLUMN weights TEXT; -- mapped; held: in memory of the process's own. NULL: mapped, by an older program
ALTER TABLE surface ADD COLUMN drift REAL;   -- one token's time after the grid over that before it; NULL: it was not timed again

-- An imported point without a baseline was its own, and its speedup 1: it has none.
DELETE FROM estimate WHERE metric GLOB 'speedup*'
    AND point_id IN (SELECT id FROM point WHERE baseline_id IS NULL AND method <> 'autoregressive');

PRAGMA user_version = 3;
