set xlabel 'tokens, or rows'
set ylabel 'share of the steps'
y_range = '[0:1]'
x_is_whole = 1
