set xlabel 'w: drafted tokens, or more, that a step accepted'
set ylabel 'share of steps'
y_range = '[0:1]'
x_is_whole = 1
