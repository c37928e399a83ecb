# Measured points under the ceilings: x y ceiling doubtful. ceiling: 1, a line of what the machine allows; 2, one that was measured.
# Both axes are logarithmic. token, if it's set: the column of a second value, at the end of a stem; x is then by powers of two, and
# lines are drawn of equal tokens a millisecond.
if (!exists('token')) { token = 0 }
do for [i = 1:|block_series|] {
    stats data index i - 1 using 3 name 'C' nooutput
    if (C_max == 0) { ok = enter(i, 'mark') }
    if (C_max > 0 && !seen[block_series[i]]) {
        seen[block_series[i]] = 1
        ok = entry('line', series[block_series[i]], strlen(series[block_series[i]]), ink, 1, 3 - C_max)
    }
}
#layout
stats data using 1 name 'X' nooutput
stats data using 2 name 'Y' nooutput
if (token) { stats data using (column(token)) name 'T' nooutput; Y_max = Y_max > T_max ? Y_max : T_max }
set logscale xy
eval 'set xtics ' . (token && X_max >= 4 * X_min ? powers(X_min, X_max, x_most) : decimal(X_min, X_max, x_most))
eval 'set ytics ' . decimal(Y_min, Y_max, y_most)
set xrange [X_min * 0.9:X_max * 1.1]
set yrange [Y_min * 0.8:Y_max * 1.3]
if (token) {
    set grid noytics
    kinds = Y_max < 30 * Y_min ? 3 : 1
    do for [j = kinds * int(floor(-log10(Y_max * 1.3))):kinds * int(ceil(-log10(Y_min * 0.8)))] {
        if (of_log(j, kinds) * Y_max * 1.3 > 1 && of_log(j, kinds) * Y_min * 0.8 < 1) {
            set arrow 150 + j from graph 0, first 1 / of_log(j, kinds) to graph 1, first 1 / of_log(j, kinds) nohead linewidth 0.7 linecolor rgb faint
            set label 150 + j sprintf('%g tokens/ms', of_log(j, kinds)) at graph 0.99, first 1 / of_log(j, kinds) right offset 0, 0.4 textcolor rgb hatch_hue font small
        }
    }
}
is_line(n) = $3 == n && valid(2) ? $2 : NaN
do for [p = 1:panels] {
    eval place
    plot for [i = first[p]:last[p]] data index i using 1:(is_line(1)) with lines linewidth 1.5 dashtype 2 linecolor rgb ink \
             title (chars && i == first[p] ? series[block_series[i + 1]] : ''), \
         for [i = first[p]:last[p]] data index i using 1:(is_line(2)) with lines linewidth 1.5 linecolor rgb ink notitle, \
         for [i = first[p]:(token ? last[p] : first[p] - 1)] data index i using 1:(sound(2)):(0):(valid(token) ? column(token) - $2 : NaN) with vectors head size graph 0.012, 90 \
             linewidth 1.2 linecolor rgb block_hue[i + 1] notitle, \
         for [i = first[p]:last[p]] data index i using 1:($3 > 0 ? NaN : sound(2)) with points pointsize 0.7 * dot \
             linecolor rgb block_hue[i + 1] pointtype block_mark[i + 1] title (chars && i > first[p] ? series[block_series[i + 1]] : ''), \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using 1:($3 > 0 ? NaN : lost(2)) with points pointsize 0.7 * dot linecolor rgb hatch_hue pointtype block_mark[i + 1]
    if (chars) { unset for [i = 1:1 + notes] label i }
}
