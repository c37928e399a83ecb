# S over W: x y low high, and the law's: law law_low law_high. Points are measured; the dashed line is the law, in its band.
set xlabel 'window W'
set ylabel 'S, tokens a step'
set offsets graph 0.04, graph 0.04, graph 0.04, graph 0.04
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    set autoscale x
    stats data index first[p]:last[p] using 1 name 'A' nooutput
    if (A_min == A_max) { set xrange [A_min - 1:A_max + 1] }
    stats data index first[p]:last[p] using 5 name 'L' nooutput
    laws = !chars && exists('L_min')
    plot for [i = first[p]:(laws ? last[p] : first[p] - 1)] data index i using 1:6:7 with filledcurves fillstyle transparent solid 0.18 \
             linecolor rgb colour(block_colour[i + 1]), \
         for [i = first[p]:(laws ? last[p] : first[p] - 1)] data index i using 1:5 with lines linewidth 1.5 dashtype 2 linecolor rgb colour(block_colour[i + 1]), \
         for [i = first[p]:last[p]] data index i using 1:(chars ? NaN : $2):3:4 with yerrorbars pointtype 0 linewidth 1 linecolor rgb colour(block_colour[i + 1]), \
         for [i = first[p]:last[p]] data index i using 1:2 with linespoints linewidth 1 pointsize 0.9 \
             linecolor rgb colour(block_colour[i + 1]) pointtype point_of(block_colour[i + 1]) title series[block_series[i + 1]], \
         for [n = 1:(laws ? 1 : 0)] keyentry with lines linewidth 1.5 dashtype 2 linecolor rgb ink title 'fitted law', \
         for [n = 1:(laws ? 1 : 0)] keyentry with boxes fillstyle transparent solid 0.18 linecolor rgb ink title '95 of 100 resamples'
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
