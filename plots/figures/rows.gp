# Measured slowdown and the roofline's, over the rows of a step: rows slowdown floor. Both axes in powers of two.
set xlabel 'rows of a step'
set ylabel 'time over that of one row'
set logscale xy 2
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    plot for [i = first[p]:last[p]] data index i using 1:3 with lines linewidth 1.5 dashtype 2 linecolor rgb colour(block_colour[i + 1]) \
             title (i == first[p] ? 'at least, by reading and computing' : ''), \
         for [i = first[p]:last[p]] data index i using 1:2 with linespoints linewidth 2 pointsize 0.8 \
             linecolor rgb colour(block_colour[i + 1]) pointtype point_of(block_colour[i + 1]) title series[block_series[i + 1]]
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
