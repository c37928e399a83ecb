# Predicted over measured: x y low high doubtful. On the line they are the same. Intervals are whole.
do for [i = 1:|block_series|] { ok = enter(i, 'mark') }
#layout
do for [p = 1:panels] {
    eval place
    set autoscale xy
    stats data index first[p]:last[p] using 1 name 'X' nooutput
    stats data index first[p]:last[p] using (valid(3) && $3 < $2 ? $3 : $2) name 'Y' nooutput
    stats data index first[p]:last[p] using (valid(4) && $4 > $2 ? $4 : $2) name 'Z' nooutput
    lowest = X_min < Y_min ? X_min : Y_min
    highest = X_max > Z_max ? X_max : Z_max
    margin = highest > lowest ? 0.06 * (highest - lowest) : 0.06 * highest
    start = lowest < margin ? 0 : lowest - margin
    set xrange [start:highest + margin]
    set yrange [start:highest + margin]
    set xtics even(highest + margin - start, x_most)
    set ytics even(highest + margin - start, y_most)
    set arrow 1 from first start, first start to first highest + margin, first highest + margin nohead \
        linewidth (1 + 0.01 * p) linecolor rgb ink dashtype 2 back
    plot for [i = first[p]:last[p]] data index i using 1:(chars ? NaN : $2):3:4 with yerrorbars pointtype 0 linewidth 1 linecolor rgb block_hue[i + 1], \
         for [i = first[p]:last[p]] data index i using 1:2 with points pointsize 0.9 * dot \
             linecolor rgb block_hue[i + 1] pointtype block_mark[i + 1] title (chars ? series[block_series[i + 1]] : ''), \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using (is_doubtful(0) ? $1 : NaN):2:('*') with labels offset 0.6, 0.3 textcolor rgb ink font star
    if (chars) { unset for [i = 1:1 + notes] label i }
}
