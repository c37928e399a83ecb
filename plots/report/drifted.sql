SELECT context, printf('%.2f', drift) AS "one token's time, after the grid over before it"
FROM drifted WHERE run_id = ?1 ORDER BY context;
