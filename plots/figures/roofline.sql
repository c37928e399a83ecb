-- Every step and part of one that was timed, under the machine's two ceilings as measured: GFLOP/s over operations a byte.
WITH machine AS (
    SELECT 1e-9 * coalesce(nullif(gpu_bandwidth, 0), nullif(bandwidth, 0)) AS slope, 1e-9 * coalesce(nullif(gpu_peak, 0), nullif(peak, 0)) AS top
    FROM attempt JOIN environment ON environment.id = environment_id WHERE run_id = ?1 ORDER BY attempt.id DESC LIMIT 1),
at AS MATERIALIZED (
    SELECT model_id, coalesce(compute, '') AS compute, kind, context, operations / bytes AS intensity, operations / median_ns AS rate, doubtful
    FROM attempt JOIN surface_doubt ON attempt_id = attempt.id WHERE run_id = ?1 AND operations > 0 AND bytes > 0 AND median_ns > 0),
span AS (SELECT model_id, compute, min(intensity) AS low, max(intensity) AS high FROM at GROUP BY model_id, compute),
line AS (
    SELECT model_id, compute, 0 AS place, 'ceiling: ' || printf('%.3g GB/s, %.3g GFLOP/s', slope, top) AS series, x AS intensity, min(x * slope, top) AS rate
    FROM (SELECT model_id, compute, low / 2 AS x FROM span UNION ALL SELECT model_id, compute, max(high * 2, top / slope * 2) FROM span JOIN machine
          UNION ALL SELECT model_id, compute, max(top / slope, low / 2) FROM span JOIN machine) JOIN machine
    WHERE slope > 0 AND top > 0)
SELECT model.name || coalesce(', ' || nullif(compute, ''), '') AS panel, series, intensity, rate, place = 0 AS ceiling, doubtful
FROM (SELECT *, 0 AS doubtful FROM line UNION ALL
      SELECT model_id, compute, 1 + context, iif(kind = 'step', 'step, context ' || context, kind), intensity, rate, doubtful FROM at)
JOIN model ON model.id = model_id
ORDER BY model_id, compute, ceiling DESC, series, intensity, rate;
