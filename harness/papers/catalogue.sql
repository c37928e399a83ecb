WITH newest_prompt AS (SELECT * FROM newest_pass WHERE pass = ?1)
