# Lines over numbers: x y low high doubtful, a line a series; low and high, where known, are an interval. x_is_whole, x_by_powers
# (of two) say what x is, y_range what y is. A panel of one x has its neighbours beside it.
set offsets graph 0.04, graph 0.04, graph 0.04, graph 0.04
eval 'set yrange ' . y_range
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    set autoscale x
    if (x_by_powers) { unset logscale x }
    # Of y a point that is in every range: stats leaves out what is beyond one.
    stats data index first[p]:last[p] using 1:(1) name 'A' nooutput
    if (x_is_whole) { set xtics whole(A_max_x - A_min_x) }
    if (x_is_whole) { set autoscale xfix } # a count begins at its first value
    if (A_min_x == 0 && A_max_x > 0) { set xrange [0:*] } # nothing here can be negative
    if (x_by_powers) {
        set logscale x 2
        set xtics twofold(A_max_x / A_min_x)
    }
    if (A_min_x == A_max_x) { set xrange [x_by_powers ? A_min_x / 2 : A_min_x - 1:x_by_powers ? A_max_x * 2 : A_max_x + 1] }
    plot for [i = first[p]:last[p]] data index i using 1:(chars ? NaN : $2):3:4 with yerrorbars pointtype 0 linewidth 1 linecolor rgb colour(block_colour[i + 1]), \
         for [i = first[p]:last[p]] data index i using 1:2 with linespoints linewidth 2 pointsize 0.8 \
             linecolor rgb colour(block_colour[i + 1]) pointtype point_of(block_colour[i + 1]) dashtype dash_of(block_colour[i + 1]) \
             title series[block_series[i + 1]], \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using (is_doubtful(0) ? $1 : NaN):2:('*') with labels offset 0.6, 0.3 textcolor rgb ink font star
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
