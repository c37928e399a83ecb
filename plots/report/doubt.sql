-- What disturbed run ?1, and the mark of its tables; no row where nothing did.
SELECT iif(disturbed, printf('something disturbed %d of %d samples (other processes, or changing clocks); ', disturbed, samples), '') ||
       iif(doubtful, '* marks times in doubt; ', '') || iif(above_S, 'a speedup above S means a disturbed baseline; ', '') ||
       'S and texts are not affected'
FROM (SELECT sum(disturbed) AS disturbed, max(doubtful) AS doubtful, max(above_S) AS above_S,
             (SELECT count(*) FROM sample WHERE point_id IN (SELECT id FROM point WHERE run_id = ?1)) AS samples
      FROM point JOIN point_doubt ON point_id = point.id WHERE run_id = ?1)
WHERE disturbed OR doubtful;
