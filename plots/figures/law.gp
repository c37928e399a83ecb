# S by the law over W: x law law_low law_high.
set xlabel 'window W, in powers of two'
set ylabel 'S by the law'
set logscale x 2
set offsets graph 0.04, graph 0.04, graph 0.04, 0
set yrange [1:*]
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    set autoscale x
    unset logscale x
    stats data index first[p]:last[p] using 1:(1) name 'A' nooutput
    set logscale x 2
    set xtics twofold(A_max_x / A_min_x)
    if (A_min_x == A_max_x) { set xrange [A_min_x / 2:A_max_x * 2] }
    plot for [i = first[p]:(chars ? first[p] - 1 : last[p])] data index i using 1:3:4 with filledcurves fillstyle transparent solid 0.18 \
             linecolor rgb colour(block_colour[i + 1]), \
         for [i = first[p]:last[p]] data index i using 1:2 with linespoints linewidth 2 pointsize 0.8 \
             linecolor rgb colour(block_colour[i + 1]) pointtype point_of(block_colour[i + 1]) dashtype dash_of(block_colour[i + 1]) \
             title series[block_series[i + 1]], \
         for [n = 1:(chars || panel[p][1:9] eq 'published' ? 0 : 1)] keyentry with boxes fillstyle transparent solid 0.18 linecolor rgb ink title (chars ? '' : '95 of 100 resamples')
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
