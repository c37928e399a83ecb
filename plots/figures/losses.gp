# Losses over steps: x y, a line a series; the first one is of batches and thin.
set xlabel 'step'
set ylabel 'loss, nats a token'
set xrange [0:*]
set origin left_of(1), bottom_of(1)
set size wide, high
set title panel[1]
plot for [i = first[1]:last[1]] data index i using 1:2 with lines linewidth (block_series[i + 1] == 1 ? 1 : 2.5) \
         linecolor rgb colour(block_colour[i + 1]) title series[block_series[i + 1]]
unset multiplot
