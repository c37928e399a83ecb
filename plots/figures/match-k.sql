-- #Match-k of what a step rejects (Ouroboros, Eq. 7 and Fig. 3): in how many places behind the first wrong token k in a
-- row are again what the target says there; the mean over drafts. Of the fastest setting of each method that drafts chains.
-- A bit of agree is a place from which k agree; drafts alike are counted together.
WITH RECURSIVE setting AS (
    SELECT *, row_number() OVER (PARTITION BY model, dataset, temperature, method ORDER BY speedup DESC NULLS LAST, number) AS place
    FROM result WHERE run_id = ?1),
draft AS MATERIALIZED (
    SELECT point_id, matches IS NOT NULL AS chain, bits(matches, step.accepted + 1, min(max(step.drafted - step.accepted - 1, 0), 63)) AS agree,
           count(*) AS steps
    FROM setting JOIN sample USING (point_id) CROSS JOIN step ON step.sample_id = sample.id
    WHERE place = 1 AND step.drafted > 0 AND method NOT IN ('lookahead', 'ngrammys') GROUP BY 1, 2, 3),
chains AS ( -- methods that draft trees now and then have no such bits then
    SELECT point_id, sum(steps) FILTER (WHERE chain) AS drafts FROM draft GROUP BY point_id HAVING 2 * drafts > sum(steps)),
run(point_id, k, agree, steps) AS (
    SELECT point_id, 1, agree, steps FROM draft JOIN chains USING (point_id) WHERE chain AND agree <> 0
    UNION ALL
    SELECT point_id, k + 1, agree & (agree >> 1), steps FROM run WHERE agree & (agree >> 1) <> 0),
counted AS MATERIALIZED (SELECT point_id, k, sum(ones(agree) * steps) AS times FROM run GROUP BY point_id, k),
ks AS (SELECT DISTINCT k FROM counted WHERE k <= 20)
SELECT model || ', ' || dataset || CASE WHEN temperature > 0 THEN ', temperature ' || temperature ELSE '' END AS panel,
       label AS series, method AS colour, k, 1.0 * coalesce(times, 0) / drafts AS matches, NULL AS low, NULL AS high
FROM chains JOIN setting USING (point_id) JOIN ks LEFT JOIN counted USING (point_id, k)
ORDER BY model, dataset, temperature, method, k;
