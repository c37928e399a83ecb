# Every sample in the order in which it was measured: order time disturbed. Disturbed ones are crossed out.
set xlabel 'samples, in the order in which they began'
set ylabel 'milliseconds a token'
set yrange [0:*]
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    plot for [i = first[p]:last[p]] data index i using 1:2 with points pointsize 0.5 \
             linecolor rgb colour(block_series[i + 1]) pointtype point_of(block_series[i + 1]) title series[block_series[i + 1]], \
         for [i = first[p]:last[p]] data index i using ($3 > 0 ? $1 : NaN):2 with points pointsize 1 pointtype 2 linecolor rgb ink, \
         keyentry with points pointtype 2 linecolor rgb ink title 'disturbed'
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
