# Contours as of the figure 'slowdown'.
set xlabel 'rows of a step'
set ylabel 'context, tokens'
array level[3] = [1.1, 1.5, 2.0]
levels = '1.1, 1.5, 2.0'
