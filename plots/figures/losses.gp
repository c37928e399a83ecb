# Losses over steps: x y, a line a series; the first one is of batches and thin.
do for [i = 1:|block_series|] { ok = enter(i, 'line') }
#layout
stats data using 1 name 'X' nooutput
stats data using 2 name 'Y' nooutput
p = 1
eval place
set xrange [0:X_max]
set yrange [Y_min - 0.05 * (Y_max - Y_min + (Y_max == Y_min)):Y_max + 0.05 * (Y_max - Y_min + (Y_max == Y_min))]
set xtics even(X_max, x_most)
set ytics even(Y_max - Y_min, y_most)
plot for [i = first[1]:last[1]] data index i using 1:2 with lines linewidth (block_series[i + 1] == 1 ? 1 : 2.5) \
         linecolor rgb block_hue[i + 1] title (chars ? series[block_series[i + 1]] : '')
