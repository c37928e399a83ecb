-- #Match-k of what a step rejects (Ouroboros, Eq. 7 and Fig. 3): in how many places behind the first wrong token k in a
-- row are again what the target says there; the mean over drafts. Of the fastest setting of each method that drafts chains.
--
-- Drafts alike are counted together. Their bits come as letters: in hex() the high half of a byte is first, so bit i is
-- letter i / 8 * 8 + (i + 4) % 8 of the nibbles written from the lowest bit on.
WITH RECURSIVE setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result WHERE run_id = ?1),
draft AS MATERIALIZED (
    SELECT point_id, step.matches, step.accepted, step.drafted, count(*) AS steps
    FROM setting JOIN sample USING (point_id) JOIN step ON step.sample_id = sample.id
    WHERE place = 1 AND step.drafted > 0 AND method NOT IN ('lookahead', 'ngrammys') GROUP BY 1, 2, 3, 4),
chains AS ( -- methods that draft trees now and then have no such bits then
    SELECT point_id, sum(steps) FILTER (WHERE matches IS NOT NULL) AS drafts
    FROM draft GROUP BY point_id HAVING 2 * drafts > sum(steps)),
letters AS (
    SELECT point_id, steps, accepted + 1 AS at, drafted,
           replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
           hex(matches), '0', '....'), '1', 'x...'), '2', '.x..'), '3', 'xx..'), '4', '..x.'), '5', 'x.x.'), '6', '.xx.'), '7', 'xxx.'),
           '8', '...x'), '9', 'x..x'), 'A', '.x.x'), 'B', 'xx.x'), 'C', '..xx'), 'D', 'x.xx'), 'E', '.xxx'), 'F', 'xxxx') AS bits
    FROM draft JOIN chains USING (point_id) WHERE matches IS NOT NULL),
place(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM place WHERE i < 63),
rejected AS (
    SELECT point_id, steps, (SELECT group_concat(substr(bits, 1 + i / 8 * 8 + (i + 4) % 8, 1), '')
                             FROM (SELECT i FROM place WHERE i >= at AND i < drafted ORDER BY i)) || '.' AS agree
    FROM letters WHERE at < drafted),
run AS MATERIALIZED ( -- how many agree in a row from a place on
    SELECT point_id, instr(substr(agree, i + 1), '.') - 1 AS length, sum(steps) AS times
    FROM rejected JOIN place ON i < length(agree) - 1 GROUP BY point_id, length),
ks AS (SELECT i AS k FROM place WHERE i BETWEEN 1 AND (SELECT min(max(length), 20) FROM run))
SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       label AS series, k, 1.0 * coalesce((SELECT sum(times) FROM run WHERE run.point_id = chains.point_id AND length >= k), 0) / drafts AS matches,
       NULL AS low, NULL AS high
FROM chains JOIN setting USING (point_id) JOIN ks
ORDER BY model, dataset, temperature, method, k;
