-- Version 6: steps that several sequences of a batch shared (engine/core/batch.h). Their times in `step` and `sample` are the
-- sequence's part: its own work, and an equal share of each call that it made with others. So parts add up to the time of the
-- whole batch, and tokens over decode_ns are the tokens a second of all sequences.

CREATE TABLE step_batch (
    sample_id  INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE,
    number     INTEGER NOT NULL,     -- of the step in the sample
    run        INTEGER NOT NULL,     -- of the target, counted in the point's pass: steps with the same one shared it
    sequences  INTEGER NOT NULL,     -- that shared it
    latency_ns INTEGER NOT NULL,     -- by the wall clock: what the sequence waited for the step, others' prompts excluded
    PRIMARY KEY (sample_id, number)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 6;
