set xlabel 'k: rejected guesses in a row that the target itself says'
set ylabel 'places in a draft, on average'
y_range = '[0:*]'
x_is_whole = 1
