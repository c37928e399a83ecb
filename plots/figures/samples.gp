# Samples in the order in which they were measured: order time mark. What disturbed one is marked over it.
set xlabel 'samples, in the order in which they began'
set ylabel 'milliseconds a token'
set yrange [0:*]
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    plot for [i = first[p]:last[p]] data index i using 1:2 with points pointsize 0.5 \
             linecolor rgb colour(block_colour[i + 1]) pointtype point_of(block_colour[i + 1]) title series[block_series[i + 1]], \
         for [i = first[p]:last[p]] data index i using ($3 == 1 ? $1 : NaN):2 with points pointsize 1 pointtype 2 linecolor rgb ink, \
         for [i = first[p]:last[p]] data index i using ($3 == 2 ? $1 : NaN):2 with points pointsize 1.2 pointtype 10 linewidth 1.5 linecolor rgb alarm, \
         keyentry with points pointtype 2 linecolor rgb ink title 'disturbed', \
         keyentry with points pointtype 10 linewidth 1.5 linecolor rgb alarm title 'throttled'
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
