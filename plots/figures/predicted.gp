# Predicted over measured: x y low high doubtful. On the line they are the same.
set xlabel 'measured'
set ylabel 'predicted'
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    set autoscale xy
    stats data index first[p]:last[p] using 1 name 'X' nooutput
    stats data index first[p]:last[p] using 2 name 'Y' nooutput
    lowest = X_min < Y_min ? X_min : Y_min
    highest = X_max > Y_max ? X_max : Y_max
    margin = highest > lowest ? 0.06 * (highest - lowest) : 0.06 * highest
    set xrange [lowest - margin:highest + margin]
    set xtics even(highest - lowest + margin)
    set ytics even(highest - lowest + margin)
    set yrange [lowest - margin:highest + margin]
    set arrow 1 from first lowest - margin, first lowest - margin to first highest + margin, first highest + margin nohead \
        linewidth (1 + 0.01 * p) linecolor rgb ink dashtype 2 back
    plot for [i = first[p]:last[p]] data index i using 1:(chars ? NaN : $2):3:4 with yerrorbars pointtype 0 linewidth 1 linecolor rgb colour(block_colour[i + 1]), \
         for [i = first[p]:last[p]] data index i using 1:2 with points pointsize 0.9 \
             linecolor rgb colour(block_colour[i + 1]) pointtype point_of(block_colour[i + 1]) title series[block_series[i + 1]], \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using (is_doubtful(0) ? $1 : NaN):2:('*') with labels offset 0.6, 0.3 textcolor rgb ink font star
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
