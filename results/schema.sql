-- The store: one file holds everything that was ever measured here, and what it was measured on.
--
--   run ---- content                 what was run: a config with the hashes of all that it stands on
--    |  \--- attempt ---- reading    each start of it, on which environment; clocks and temperatures
--    |          |   \---- surface    times of steps of given shapes (memory-to-compute surface)
--    |        sample ---- step ---- step_pass, step_source, step_guess
--    |          | |  \--- sample_accept, sample_source, sample_rank      sums of its steps
--    |          | \------ output   divergence
--   point ------/                    a model, a dataset, a method and all settings
--    \--- point_param, one_off, estimate, failure
--  run, points --- fit ---- fit_point, fit_estimate     the law that fits them
--
-- What must always hold:
--  1. A sample comes with its steps, their sources and passes, and the sums of them, in one transaction.
--  2. The sums (sample and sample_*) say what a scan of the steps would: no table and no figure needs the scan.
--  3. Nothing is changed or deleted once it is in, but by gc; estimates and one's own failures are made anew.
--  4. A run's content never changes: other content has another hash, and so is another run.
--
-- Times of steps are whole nanoseconds; moments are seconds since 1970, UTC. Numbers from 0 unless said. What is NULL
-- was not told: of our own steps everything is, of imported ones what their engine reports.

-- What the program makes of its own text, to be made anew where that has changed: views.
CREATE TABLE made (what TEXT PRIMARY KEY, hash TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    id          INTEGER PRIMARY KEY,
    uid         TEXT NOT NULL UNIQUE DEFAULT (lower(hex(randomblob(16)))), -- the same run in other stores
    hash        TEXT NOT NULL,       -- of all that decides what it measures: config, code, models, data
    kind        TEXT NOT NULL CHECK (kind IN ('sweep', 'surface', 'import')),
    name        TEXT NOT NULL,
    about       TEXT,
    config_file TEXT,
    config      TEXT,                -- as written
    overrides   TEXT,                -- of the command line, a JSON array
    version     TEXT NOT NULL,       -- of the code, with its commit
    dirty       INTEGER NOT NULL CHECK (dirty IN (0, 1)), -- the commit does not tell all of the code
    created     REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0)
) STRICT;
CREATE INDEX run_hash ON run (hash);

-- What a run stands on, by SHA-256: kind is weights, draft, adapter, heads, tokenizer, template, dataset, config...
CREATE TABLE content (
    run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    kind   TEXT NOT NULL,
    name   TEXT NOT NULL,
    hash   TEXT NOT NULL,
    path   TEXT,
    PRIMARY KEY (run_id, kind, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE environment (
    id           INTEGER PRIMARY KEY,
    hash         TEXT NOT NULL UNIQUE, -- of the rest
    version      TEXT NOT NULL,
    compiler     TEXT, flags TEXT, libraries TEXT, -- libraries: a JSON object
    host         TEXT, system TEXT, kernel TEXT,
    cpu          TEXT, isa TEXT, governor TEXT,
    cores        INTEGER, threads INTEGER, virtual_machine INTEGER,
    l1d          INTEGER, l2 INTEGER, l3 INTEGER, memory INTEGER, -- bytes
    bandwidth    REAL, peak REAL,                  -- bytes/s and operations/s, as measured
    gpu          TEXT, gpu_uuid TEXT, driver TEXT, cuda TEXT, cublas TEXT,
    gpu_memory   INTEGER, gpu_bandwidth REAL, gpu_peak REAL
) STRICT;

CREATE TABLE attempt (
    id             INTEGER PRIMARY KEY,
    run_id         INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    uid            TEXT NOT NULL UNIQUE DEFAULT (lower(hex(randomblob(16)))),
    environment_id INTEGER NOT NULL REFERENCES environment,
    argv           TEXT NOT NULL,    -- a JSON array
    started        REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
    ended          REAL,             -- NULL: it runs, or was killed
    result         TEXT              -- done, partial, interrupted, failed
) STRICT;
CREATE INDEX attempt_run ON attempt (run_id);
CREATE INDEX attempt_environment ON attempt (environment_id); -- gc

CREATE TABLE reading (
    attempt_id    INTEGER NOT NULL REFERENCES attempt ON DELETE CASCADE,
    number        INTEGER NOT NULL,
    at            REAL NOT NULL,
    moment        TEXT NOT NULL,     -- before, during, after
    device        TEXT NOT NULL,
    clock_mhz     REAL, memory_clock_mhz REAL, power_w REAL, temperature_c REAL,
    throttle      TEXT,              -- reasons
    load          REAL, busy_others INTEGER,
    PRIMARY KEY (attempt_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE model (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,          -- in tables
    hash     TEXT NOT NULL,          -- of weights, tokenizer, draft, adapter, heads
    path     TEXT,
    shape    TEXT,                   -- a JSON object
    layers   INTEGER NOT NULL,       -- of the target
    dtype    TEXT,
    stand_in TEXT,                   -- what it stands in for, and how; NULL: it is what its name says
    UNIQUE (name, hash)
) STRICT;

CREATE TABLE dataset (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,              -- of its rows as they were read
    path TEXT,
    UNIQUE (name, hash)
) STRICT;

CREATE TABLE prompt (
    id         INTEGER PRIMARY KEY,
    dataset_id INTEGER NOT NULL REFERENCES dataset,
    number     INTEGER NOT NULL,     -- of the row
    turn       INTEGER NOT NULL,
    name       TEXT,                 -- the dataset's own: "HumanEval/3", "81"
    task       TEXT,                 -- category
    UNIQUE (dataset_id, number, turn)
) STRICT;

CREATE TABLE point (
    id           INTEGER PRIMARY KEY,
    run_id       INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    number       INTEGER NOT NULL,   -- from 1
    hash         TEXT NOT NULL,
    model_id     INTEGER NOT NULL REFERENCES model,
    dataset_id   INTEGER NOT NULL REFERENCES dataset,
    method       TEXT NOT NULL,
    decoder      TEXT NOT NULL,      -- "lookahead:W=15,..."
    label        TEXT NOT NULL,      -- in tables
    temperature  REAL NOT NULL,
    baseline_id  INTEGER REFERENCES point, -- the autoregressive point that speedup divides by
    same_path_id INTEGER REFERENCES point, -- the autoregressive point with the same settings
    skipped      TEXT,               -- why it is not run; NULL: it is
    UNIQUE (run_id, hash),
    UNIQUE (run_id, number)
) STRICT;
CREATE INDEX point_model ON point (model_id);
CREATE INDEX point_dataset ON point (dataset_id);
CREATE INDEX point_baseline ON point (baseline_id);
CREATE INDEX point_same_path ON point (same_path_id);

-- Numbers are stored as numbers.
CREATE TABLE point_param (
    point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
    section  TEXT NOT NULL,          -- method, hardware, generation
    name     TEXT NOT NULL,
    value    ANY,
    PRIMARY KEY (point_id, section, name)
) STRICT, WITHOUT ROWID;

-- Costs that a point has once: a table of n-grams, a datastore, training.
CREATE TABLE one_off (
    point_id INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
    name     TEXT NOT NULL,
    ns       INTEGER NOT NULL,
    bytes    INTEGER,
    PRIMARY KEY (point_id, name)
) STRICT, WITHOUT ROWID;

-- Statistics that take resampling to make; gone when a sample of the point or its baseline comes.
CREATE TABLE estimate (
    point_id  INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
    metric    TEXT NOT NULL,
    value     REAL NOT NULL, low REAL, high REAL, deviation REAL,
    resamples INTEGER, seed INTEGER,
    PRIMARY KEY (point_id, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE failure (
    id         INTEGER PRIMARY KEY,
    attempt_id INTEGER NOT NULL REFERENCES attempt ON DELETE CASCADE,
    point_id   INTEGER REFERENCES point ON DELETE CASCADE,
    prompt_id  INTEGER REFERENCES prompt,
    pass       INTEGER,
    at         REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
    message    TEXT NOT NULL
) STRICT;
CREATE INDEX failure_attempt ON failure (attempt_id);
CREATE INDEX failure_point ON failure (point_id);
CREATE INDEX failure_prompt ON failure (prompt_id);

-- Equal outputs are stored once: of a greedy run nearly all are equal.
CREATE TABLE output (
    id       INTEGER PRIMARY KEY,
    hash     TEXT NOT NULL UNIQUE,   -- of ids and text
    ids      BLOB NOT NULL,          -- int32, little-endian
    tokens   INTEGER NOT NULL,
    text     TEXT,
    pieces   TEXT,                -- the part of each token in it, a JSON array; a letter of several tokens is the last one's
    bytes    INTEGER,                -- of the text
    repeated REAL,                   -- share of its 4-grams that it has said before
    looping  INTEGER CHECK (looping IN (0, 1)) -- it ends in a loop
) STRICT;

CREATE TABLE score (
    output_id INTEGER NOT NULL REFERENCES output ON DELETE CASCADE,
    prompt_id INTEGER NOT NULL REFERENCES prompt,
    metric    TEXT NOT NULL,         -- rouge1, rouge2, rougeL
    value     REAL NOT NULL,
    PRIMARY KEY (output_id, prompt_id, metric)
) STRICT, WITHOUT ROWID;
CREATE INDEX score_prompt ON score (prompt_id);

-- One prompt decoded once.
CREATE TABLE sample (
    id             INTEGER PRIMARY KEY,
    point_id       INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
    pass           INTEGER NOT NULL,
    prompt_id      INTEGER NOT NULL REFERENCES prompt,
    attempt_id     INTEGER NOT NULL REFERENCES attempt ON DELETE CASCADE,
    output_id      INTEGER REFERENCES output,
    position       INTEGER NOT NULL, -- among the methods of this prompt: the order rotates
    started        REAL NOT NULL,
    flags          INTEGER NOT NULL, -- bits of flag
    prompt_tokens  INTEGER NOT NULL,
    tokens         INTEGER NOT NULL, -- emitted after prefill
    steps          INTEGER NOT NULL, -- after prefill
    prefill_tokens INTEGER NOT NULL, -- what S_reference counts beside: prefill as a step, with the token that it gives
    prefill_steps  INTEGER NOT NULL, -- or would give; in no other number
    filling_steps  INTEGER NOT NULL,
    rows           INTEGER, asked INTEGER, drafted INTEGER, -- over all steps
    accepted       INTEGER NOT NULL, tried INTEGER,
    prefill_ns     INTEGER,          -- NULL: in decode_ns (of what was imported only)
    decode_ns      INTEGER NOT NULL, -- by the wall clock, prefill excluded
    propose_ns     INTEGER, forward_ns INTEGER, verify_ns INTEGER, observe_ns INTEGER,
    device_ns      INTEGER,          -- of the target's layers and head, by the device's events; NULL: it has none
    device_head_ns INTEGER,          -- the head's part of device_ns; the layers took the rest. NULL: only the sum is known
    device_commit_ns INTEGER,        -- of commits, which device_ns leaves out; without the last one
    UNIQUE (point_id, pass, prompt_id)
) STRICT;
CREATE INDEX sample_attempt ON sample (attempt_id);
CREATE INDEX sample_prompt ON sample (prompt_id);
CREATE INDEX sample_output ON sample (output_id);

CREATE TABLE flag (bit INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, meaning TEXT NOT NULL) STRICT;
INSERT INTO flag VALUES
    (1, 'outlier', 'its time is far from that of its repeats'),
    (2, 'throttled', 'the device said so'),
    (4, 'clock', 'clocks changed while it ran'),
    (8, 'load', 'other processes or virtual machines ran'),
    (16, 'diverged', 'its text is not the baseline''s'),
    (32, 'cut', 'ended by the limit of tokens or context'),
    (64, 'paused', 'its process was stopped, or waited for something else than a processor'),
    (128, 'paged', 'memory was read from the disk while it ran: there is too little of it');

-- Steps of a sample by how many drafted tokens they accepted: CTAR without a scan.
CREATE TABLE sample_accept (
    sample_id INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE,
    kind      INTEGER NOT NULL REFERENCES step_kind,
    accepted  INTEGER NOT NULL,
    steps     INTEGER NOT NULL,
    PRIMARY KEY (sample_id, kind, accepted)
) STRICT, WITHOUT ROWID;

CREATE TABLE source (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

CREATE TABLE sample_source (
    sample_id INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE,
    source_id INTEGER NOT NULL REFERENCES source,
    rows      INTEGER NOT NULL,      -- offered
    steps     INTEGER NOT NULL,      -- in which it offered any
    won       INTEGER NOT NULL,      -- steps in which it had the longest match, the first of equals
    tokens    INTEGER NOT NULL,      -- accepted in them
    PRIMARY KEY (sample_id, source_id)
) STRICT, WITHOUT ROWID;

-- Steps that a source won, by the length of its match and the rank of that row among its own, from 1.
CREATE TABLE sample_rank (
    sample_id INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE,
    source_id INTEGER NOT NULL REFERENCES source,
    length    INTEGER NOT NULL,
    rank      INTEGER NOT NULL,
    steps     INTEGER NOT NULL,
    PRIMARY KEY (sample_id, source_id, length, rank)
) STRICT, WITHOUT ROWID;

CREATE TABLE step_kind (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO step_kind VALUES (0, 'steady'), (1, 'filling'), (2, 'prefill');

CREATE TABLE step (
    sample_id  INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    kind       INTEGER NOT NULL REFERENCES step_kind,
    context    INTEGER,              -- committed tokens before it
    rows       INTEGER,              -- nodes run
    asked      INTEGER,              -- nodes before merging
    depth      INTEGER,              -- of the deepest
    candidates INTEGER,              -- nodes that may be accepted
    probes     INTEGER,
    drafted    INTEGER,              -- longest chain of candidates
    tried      INTEGER,              -- proposals that the verifier looked at
    accepted   INTEGER NOT NULL,
    emitted    INTEGER NOT NULL,     -- after EOS and limits
    matches    BLOB,                 -- of a drafted chain: bit i (from the lowest of byte 0): the target agrees
    pool       INTEGER, pool_hits INTEGER,
    head_rows  INTEGER,              -- see step_pass
    margin     REAL,                 -- of run --record-guesses: the target's last token over its second choice, in logits
    propose_ns INTEGER, forward_ns INTEGER, verify_ns INTEGER, observe_ns INTEGER, device_ns INTEGER,
    PRIMARY KEY (sample_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE pass_model (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO pass_model VALUES (0, 'target'), (1, 'draft'), (2, 'adapter');

-- The passes that a step ran. Most steps run the whole target once over their rows and its head over some:
-- such a step has no rows here, but head_rows. The view pass shows both kinds alike.
CREATE TABLE step_pass (
    sample_id INTEGER NOT NULL,
    number    INTEGER NOT NULL,      -- of the step
    pass      INTEGER NOT NULL,
    model     INTEGER NOT NULL REFERENCES pass_model,
    a         INTEGER NOT NULL, b INTEGER NOT NULL, -- layers [a, b); a = b: the head
    rows      INTEGER NOT NULL,
    context   INTEGER NOT NULL,
    count     INTEGER NOT NULL,      -- passes like this
    PRIMARY KEY (sample_id, number, pass),
    FOREIGN KEY (sample_id, number) REFERENCES step ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- A source that offered nothing has no row.
CREATE TABLE step_source (
    sample_id INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    source_id INTEGER NOT NULL REFERENCES source,
    rows      INTEGER NOT NULL,
    length    INTEGER NOT NULL,      -- accepted tokens of the row that had most
    rank      INTEGER NOT NULL,      -- of that row among the source's, from 1; 0: nothing matched
    won       INTEGER NOT NULL,      -- 1: it has the longest match of the step, and is the first that has
    PRIMARY KEY (sample_id, number, source_id),
    FOREIGN KEY (sample_id, number) REFERENCES step ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Guesses that a step rejected, of run --record-guesses: proposals next to the tokens that it emitted.
CREATE TABLE step_guess (
    sample_id INTEGER NOT NULL,
    number    INTEGER NOT NULL,      -- of the step
    guess     INTEGER NOT NULL,
    depth     INTEGER NOT NULL,      -- 1: instead of the step's first token
    token     INTEGER NOT NULL,
    piece     TEXT,
    PRIMARY KEY (sample_id, number, guess),
    FOREIGN KEY (sample_id, number) REFERENCES step ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Steps that several sequences of a batch shared (engine/core/batch.h). Their times in `step` and `sample` are the sequence's
-- part: its own work, and an equal share of each call that it made with others. So parts add up to the time of the whole
-- batch, and tokens over decode_ns are the tokens a second of all sequences.
CREATE TABLE step_batch (
    sample_id  INTEGER NOT NULL REFERENCES sample ON DELETE CASCADE,
    number     INTEGER NOT NULL,     -- of the step in the sample
    run        INTEGER NOT NULL,     -- of the target, counted in the point's pass: steps with the same one shared it
    sequences  INTEGER NOT NULL,     -- that shared it
    latency_ns INTEGER NOT NULL,     -- by the wall clock: what the sequence waited for the step, others' prompts excluded
    PRIMARY KEY (sample_id, number)
) STRICT, WITHOUT ROWID;

-- Where a greedy output first leaves the baseline's.
CREATE TABLE divergence (
    sample_id INTEGER PRIMARY KEY REFERENCES sample ON DELETE CASCADE,
    position  INTEGER NOT NULL,      -- in the output
    wanted    INTEGER NOT NULL, got INTEGER NOT NULL, -- tokens; -1: it ended
    margin    REAL                   -- between the two highest logits there
) STRICT;

CREATE TABLE surface (
    id         INTEGER PRIMARY KEY,
    attempt_id INTEGER NOT NULL REFERENCES attempt ON DELETE CASCADE,
    model_id   INTEGER NOT NULL REFERENCES model,
    kind       TEXT NOT NULL CHECK (kind IN ('step', 'layers', 'head', 'prefill', 'commit', 'host')),
    device     TEXT NOT NULL,
    compute    TEXT,
    layout     TEXT CHECK (layout IN ('tree', 'batch', 'chain')),
    cache      TEXT CHECK (cache IN ('copied', 'viewed')),
    k          INTEGER, w INTEGER,   -- k rows of w + 1 tokens
    a          INTEGER, b INTEGER,   -- layers [a, b)
    rows       INTEGER NOT NULL,
    head_rows  INTEGER,
    context    INTEGER NOT NULL,
    samples    INTEGER NOT NULL,
    mean_ns    REAL NOT NULL, median_ns REAL NOT NULL, deviation_ns REAL,
    slowdown   REAL,                 -- over (1, 0) at the same context
    floor_ns   REAL,                 -- what bandwidth or peak allows at best
    bytes      REAL, operations REAL,
    flags      INTEGER NOT NULL,
    weights    TEXT,                 -- mapped; held: in memory of the process's own; NULL: mapped
    drift      REAL,                 -- one token's time after a context's grid over that before it; NULL: it was not timed again
    low_ns     REAL, high_ns REAL,   -- 95% of median_ns, by order: harness/machine/bench.h
    slowdown_low REAL, slowdown_high REAL, -- 95% of slowdown, with the change of one token's time
    disturbed  INTEGER,              -- samples that others disturbed; with a flag, too few others were left
    sequences  INTEGER               -- that ran the step together, each k rows of w + 1 tokens over a context of its own: rows
                                     -- are the sum, slowdown is over one token of one; NULL: a part of a step, of one
) STRICT;
CREATE INDEX surface_attempt ON surface (attempt_id);
CREATE INDEX surface_model ON surface (model_id, kind, context);

-- A fit of Lookahead's law (alpha, f) to a run's points, by `outpace fit RUN`. The view `fitted` shows it, and whether the
-- store has other points for it by now.
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

PRAGMA application_id = 1330992208; -- "OUTP"
PRAGMA user_version = 9; -- stores of other versions are refused
