# The line: as fast as without a method.
set arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 1 dashtype 2 linecolor rgb ink
