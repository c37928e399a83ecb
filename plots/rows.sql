-- Steps of equal numbers of rows are one place. floor: the roofline's time over the measured one of one row.
SELECT model.name || ', ' || layout AS panel, 'context ' || context AS series, rows,
       avg(slowdown) AS slowdown, avg(floor_ns * slowdown / median_ns) AS floor
FROM attempt JOIN heat ON heat.attempt_id = attempt.id JOIN model ON model.id = model_id
WHERE run_id = ?1 AND slowdown IS NOT NULL
GROUP BY model_id, layout, context, rows
ORDER BY model_id, layout, context, rows;
