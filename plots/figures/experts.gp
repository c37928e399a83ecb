# The line: as fast as without a method.
x_name = 'rows of a step, the mean'
y_name = 'speedup, priced'
x_by_powers = 1
y_within = 1
set arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 1 dashtype 2 linecolor rgb ink
