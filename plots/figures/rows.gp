# Measured slowdown and the roofline's, over the rows of a step: rows slowdown floor doubtful. Both axes are logarithmic.
y_name = y_name . how
do for [i = 1:|block_series|] { ok = enter(i, 'curve') }
ok = entry('line', 'at least, by reading and computing', 34, ink, 1, 2)
#layout
stats data using 1 name 'X' nooutput
stats data using 2 name 'Y' nooutput
stats data using 3 name 'Z' nooutput
lowest = exists('Z_min') ? (Z_min < Y_min ? Z_min : Y_min) : Y_min
highest = exists('Z_max') ? (Z_max > Y_max ? Z_max : Y_max) : Y_max
set logscale xy
set xrange [X_min * 0.9:X_max * 1.15]
set yrange [lowest * 0.9:highest * 1.15]
eval 'set xtics ' . powers(X_min, X_max, x_most)
eval 'set ytics ' . decimal(lowest * 0.9, highest * 1.15, y_most)
do for [p = 1:panels] {
    eval place
    plot for [i = first[p]:last[p]] data index i using 1:3 with lines linewidth 1.5 dashtype 2 linecolor rgb block_hue[i + 1] \
             title (chars && i == first[p] ? 'at least, by reading and computing' : ''), \
         for [i = first[p]:last[p]] data index i using 1:(sound(2)) with linespoints linewidth 2 pointsize 0.8 * dot \
             linecolor rgb block_hue[i + 1] pointtype block_mark[i + 1] title (chars ? series[block_series[i + 1]] : ''), \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using 1:(lost(2)) with points pointsize 0.8 * dot linecolor rgb hatch_hue pointtype block_mark[i + 1], \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using (is_doubtful(0) ? $1 : NaN):2:('*') with labels offset 0.6, 0.3 textcolor rgb ink font star
    if (chars) { unset for [i = 1:1 + notes] label i }
}
