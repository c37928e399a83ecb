-- Version 5: fits of Lookahead's law (alpha, f) to a run's points, as `outpace fit RUN` made them (schema.sql has the other
-- tables). The view `fitted` shows them, and which of them the store has other points for by now.

CREATE TABLE fit (
    id        INTEGER PRIMARY KEY,
    run_id    INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    hash      TEXT NOT NULL,         -- of the points and of all that is assumed: a fit made again is the same row
    points    TEXT NOT NULL,         -- SHA-256 of the points, as `outpace fit RUN --tsv` prints them
    title     TEXT NOT NULL,         -- model, dataset, and what else tells these points from others of the run
    law       TEXT NOT NULL CHECK (law IN ('paper', 'corrected')),
    bonus     TEXT NOT NULL CHECK (bonus IN ('kept', 'dropped')),
    output    REAL,                  -- tokens of an output, whose first steps fill the window; NULL: none do
    estimator TEXT NOT NULL,         -- of fit_estimate, the one to take
    fitted    INTEGER NOT NULL,      -- settings of (N, W, G) that the law is fitted to
    prompts   INTEGER NOT NULL,
    resamples INTEGER NOT NULL, seed INTEGER NOT NULL, -- of the intervals, which hold 95%
    version   TEXT NOT NULL,         -- of the code that fitted
    made      REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
    UNIQUE (run_id, hash)
) STRICT;

-- The points that it is of, and how many samples each had then.
CREATE TABLE fit_point (
    fit_id   INTEGER NOT NULL REFERENCES fit ON DELETE CASCADE,
    point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
    samples  INTEGER NOT NULL,
    PRIMARY KEY (fit_id, point_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX fit_point_point ON fit_point (point_id);

CREATE TABLE fit_estimate (
    fit_id    INTEGER NOT NULL REFERENCES fit ON DELETE CASCADE,
    estimator TEXT NOT NULL,         -- least_squares, likelihood
    alpha     REAL NOT NULL, alpha_low REAL, alpha_high REAL,
    f         REAL NOT NULL, f_low REAL, f_high REAL,
    rms       REAL,                  -- of the residuals of S
    condition REAL, correlation REAL, -- in (ln alpha, ln f)
    drawn     TEXT,                  -- what the intervals draw again: prompts, errors, residuals, steps
    PRIMARY KEY (fit_id, estimator)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 5;
