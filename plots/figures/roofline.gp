# Measured points under the ceilings: intensity rate ceiling doubtful. Both axes by tens.
has_ceiling = 0
do for [i = 1:|block_series|] {
    stats data index i - 1 using 3 name 'C' nooutput
    if (C_max > 0) { has_ceiling = i } else { ok = enter(i, 'mark') }
}
if (has_ceiling) { ok = entry('line', series[block_series[has_ceiling]], strlen(series[block_series[has_ceiling]]), ink, 1, 2) }
#layout
stats data using 1 name 'X' nooutput
stats data using 2 name 'Y' nooutput
set logscale xy
eval 'set xtics ' . decimal(X_min, X_max, x_most)
eval 'set ytics ' . decimal(Y_min, Y_max, y_most)
set xrange [X_min * 0.9:X_max * 1.1]
set yrange [Y_min * 0.8:Y_max * 1.3]
do for [p = 1:panels] {
    eval place
    plot for [i = first[p]:last[p]] data index i using 1:($3 > 0 ? $2 : NaN) with lines linewidth 1.5 dashtype 2 linecolor rgb ink \
             title (chars && i == first[p] ? series[block_series[i + 1]] : ''), \
         for [i = first[p]:last[p]] data index i using 1:($3 > 0 ? NaN : sound(2)) with points pointsize 0.7 * dot \
             linecolor rgb block_hue[i + 1] pointtype block_mark[i + 1] title (chars && i > first[p] ? series[block_series[i + 1]] : ''), \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using 1:(lost(2)) with points pointsize 0.7 * dot linecolor rgb hatch_hue pointtype block_mark[i + 1]
    if (chars) { unset for [i = 1:1 + notes] label i }
}
