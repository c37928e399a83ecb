set xlabel 'window W, in powers of two'
set ylabel 'S, tokens a step'
set logscale x 2
x_by_powers = 1
y_range = '[1:*]'
