-- Steps of equal numbers of rows are one place. floor: the roofline's time over the measured one of one row, which was
-- measured many times: its mean, so that the roofline bends only where it does.
WITH at AS (
    SELECT heat.*, avg(median_ns / slowdown) OVER (PARTITION BY model_id, layout, sequences, context) AS one_ns
    FROM attempt JOIN heat ON heat.attempt_id = attempt.id WHERE run_id = ?1 AND slowdown IS NOT NULL)
SELECT model.name || ', ' || layout || iif(sequences > 1, ', batch ' || sequences, '') AS panel, 'context ' || context AS series, rows,
       avg(slowdown) AS slowdown, avg(floor_ns) / one_ns AS floor, max(doubtful > 0) + (min(doubtful) = 2) AS doubtful
FROM at JOIN model ON model.id = model_id
GROUP BY model_id, layout, sequences, context, rows
ORDER BY model_id, layout, sequences, context, rows;
