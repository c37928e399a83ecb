set xlabel 'rows of a step, the mean'
set ylabel 'speedup, priced'
set logscale x 2
x_by_powers = 1
set arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 1 dashtype 2 linecolor rgb ink
y_range = '[* < 1:1 < *]'
