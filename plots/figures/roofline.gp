# Measured points under the ceilings: intensity rate ceiling. Both axes by tens.
set xlabel 'operations a byte'
set ylabel 'GFLOP/s'
set logscale xy
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    plot for [i = first[p]:last[p]] data index i using 1:($3 > 0 ? $2 : NaN) with lines linewidth 1.5 dashtype 2 linecolor rgb ink \
             title (i == first[p] ? series[block_series[i + 1]] : ''), \
         for [i = first[p] + 1:last[p]] data index i using 1:($3 > 0 ? NaN : $2) with points pointsize 0.7 \
             linecolor rgb colour(block_colour[i + 1]) pointtype point_of(block_colour[i + 1]) title series[block_series[i + 1]]
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
