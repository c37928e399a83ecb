# Samples in the order in which they were measured: order time mark. What disturbed one is marked over it.
x_shared = 0
do for [i = 1:|block_series|] { ok = enter(i, 'mark') }
ok = entry('mark', 'disturbed', 9, ink, 2, 1)
stats data using ($3 == 2) name 'throttled' nooutput
if (throttled_max > 0) { ok = entry('mark', 'throttled', 9, alarm, 10, 1) }
#layout
stats data using 2 name 'Y' nooutput
slowest = Y_max > 0 ? Y_max : 1
set ytics even(slowest, y_most)
do for [p = 1:panels] {
    eval place
    set autoscale xy # or stats would leave out points beyond a range
    stats data index first[p]:last[p] using 1 name 'X' nooutput
    set xrange [0:X_max + 1]
    set yrange [0:1.05 * slowest]
    set xtics whole(X_max, x_most)
    plot for [i = first[p]:last[p]] data index i using 1:2 with points pointsize 0.5 * dot \
             linecolor rgb block_hue[i + 1] pointtype block_mark[i + 1] title (chars ? series[block_series[i + 1]] : ''), \
         for [i = first[p]:last[p]] data index i using ($3 == 1 ? $1 : NaN):2 with points pointsize 0.9 * dot pointtype 2 linecolor rgb ink, \
         for [i = first[p]:last[p]] data index i using ($3 == 2 ? $1 : NaN):2 with points pointsize 1.2 * dot pointtype 10 linewidth 1.5 linecolor rgb alarm, \
         for [n = 1:chars] keyentry with points pointtype 2 title 'disturbed', \
         for [n = 1:chars && throttled_max > 0] keyentry with points pointtype 10 title 'throttled'
    if (chars) { unset for [i = 1:1 + notes] label i }
}
