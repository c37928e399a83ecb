# Below the line at 1 a method no longer pays.
set xlabel 'sequences that share each step'
set ylabel 'speedup over one token each'
x_by_powers = 1
set arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 2 dashtype 2 linecolor rgb ink
y_range = '[0 < * < 1:1 < *]'
