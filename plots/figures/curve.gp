# Lines over numbers: x y low high, a line a series; low and high, where known, are an interval.
set offsets graph 0.04, graph 0.04, graph 0.04, graph 0.04
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    plot for [i = first[p]:last[p]] data index i using 1:(chars ? NaN : $2):3:4 with yerrorbars pointtype 0 linewidth 1 linecolor rgb colour(block_series[i + 1]), \
         for [i = first[p]:last[p]] data index i using 1:2 with linespoints linewidth 2 pointsize 0.8 \
             linecolor rgb colour(block_series[i + 1]) pointtype point_of(block_series[i + 1]) dashtype dash_of(block_series[i + 1]) \
             title series[block_series[i + 1]]
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
