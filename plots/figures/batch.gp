# The line: as fast as without a method.
x_name = 'sequences that share each step'
y_name = 'speedup' . how
x_by_powers = 1
y_within = 1
set arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 1 dashtype 2 linecolor rgb ink
