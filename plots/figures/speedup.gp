# Bars from 0, the best setting of each method: row speedup low high label_bar published label_why doubtful.
said_below = 'speedup, and the interval that holds 95 of 100 resamples'
# A bar's number stands at its end, the interval under the number; in characters it stands behind it in numbers.
over = chars ? 0 : 0.13
under = chars ? 0 : 0.2
interval(low, high) = chars && low == low && high == high ? sprintf('[%.2f, %.2f] ', low, high) : ''
said(v, low, high, why) = (v < 0 ? '' : sprintf('%.2f', v) . (is_doubtful(0) ? '* ' : ' ') . interval(low, high)) . (why ? label[why] : '')
set key off
set grid noytics
set ytics scale 0
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    set autoscale xy
    stats data index first[p]:last[p] using (valid(4) ? $4 : valid(2) ? $2 : 0.04) name 'V' nooutput
    stats data index first[p]:last[p] using 6 name 'P' nooutput
    printed = exists('P_max')
    set xlabel (printed ? said_below . '; diamonds: published, of another machine' : said_below)
    if (printed) { V_max = V_max > P_max ? V_max : P_max }
    set xrange [0:1.3 * (V_max > 1 ? V_max : 1)]
    bars = last[p] - first[p] + 1
    set yrange [bars + 0.6:0.4]
    # Of a width of its own: gnuplot's SVG forgets the dashes of a line that is drawn as the last one was.
    set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead linewidth (1 + 0.01 * p) linecolor rgb ink dashtype 2 back
    plot for [i = first[p]:last[p]] data index i using 2:1:(0):2:($1 - half):($1 + half):ytic(label[int($5)]) with boxxyerror fillcolor rgb colour(block_colour[i + 1]), \
         for [i = first[p]:last[p]] data index i using (valid(2) ? NaN : 0.02):1:(0):(0.04):($1 - half):($1 + half):ytic(label[int($5)]) \
             with boxxyerror fillstyle transparent pattern 4 border fillcolor rgb ink, \
         for [i = first[p]:last[p]] data index i using (chars ? NaN : $2):($1 + under):3:4 with xerrorbars pointtype 0 linewidth 1.5 linecolor rgb ink, \
         for [i = first[p]:last[p]] data index i using (valid(2) ? $2 : 0.04):($1 - over):(said(valid(2) ? $2 : -1, valid(3) ? $3 : NaN, valid(4) ? $4 : NaN, int($7))) \
             with labels left offset (chars ? 0.8 : 0.5), 0 textcolor rgb ink font small, \
         for [i = first[p]:(printed ? last[p] : first[p] - 1)] data index i using 6:1 with points pointtype 12 pointsize 1.4 linewidth 2 linecolor rgb alarm
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
