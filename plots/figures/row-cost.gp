# Each point's time of a row, and its time of a token at the end of a stem: rows ms ceiling doubtful token.
token = 5
