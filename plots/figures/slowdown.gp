# Contours: where a step costs a tenth, a half, and as much again as one of a single token.
set xlabel 'w: each row has w + 1 tokens'
set ylabel 'k, rows'
array level[3] = [1.1, 1.5, 2.0]
levels = '1.1, 1.5, 2.0'
