# Bars from 0, the best setting of each method: row speedup low high label_bar label_method published label_why doubtful.
form = 'bars'
do for [p = 1:panels] { if (last[p] - first[p] + 1 > most_bars) { most_bars = last[p] - first[p] + 1 } }
stats data using 7 name 'P' nooutput
printed = exists('P_max')
x_name = x_name . (chars ? ', and the interval that holds 95 of 100 resamples' : '') . (chars && printed ? '; diamonds: published, of another machine' : '')
if (printed) { ok = entry('mark', 'published, of another machine', 29, alarm, 12, 1) }
#layout
set key off
# A bar's number is at its end, the interval under the number; in characters it is behind the bar, in numbers.
over_bar = chars ? 0 : 0.13
under_bar = chars ? 0 : 0.2
interval(low, high) = chars && low == low && high == high ? sprintf('[%.2f, %.2f] ', low, high) : ''
said(v, low, high, why) = (v < 0 ? '' : written(sprintf('%.2f', v)) . ' ' . interval(low, high)) . reason(v, why)
set grid noytics
set ytics scale 0
stats data using (valid(4) ? $4 : valid(2) ? $2 : 0.04) name 'V' nooutput
stats data using (valid(2) ? $2 : 0) name 'W' nooutput
longest = V_max > 1 ? V_max : 1
if (printed) { longest = longest > P_max ? longest : P_max }
# Room for the number of the longest bar; the reason of an empty row is cut.
stats data using (valid(2) ? 6 + (int($8) ? strlen(label[int($8)]) : 0) : 0) name 'N' nooutput
room = chars ? 0.3 * longest : longest * N_max * em / (inner - N_max * em)
longest = longest > W_max + room ? longest * 1.04 : W_max + room
reason(v, n) = n == 0 ? '' : v < 0 && !chars ? cut(label[n], inner - 2 * em) : label[n]
do for [p = 1:panels] {
    eval place
    set xrange [0:longest]
    set xtics even(longest, x_most)
    bars = last[p] - first[p] + 1
    set yrange [bars + 0.6:0.4]
    # Of a width of its own: gnuplot's SVG forgets the dashes of a line that is drawn as the last one was.
    set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead linewidth (1 + 0.01 * p) linecolor rgb ink dashtype 2 back
    plot for [i = first[p]:last[p]] data index i using (chars ? $2 : sound(2)):1:(0):2:($1 - half):($1 + half):ytic(label[int(column(short ? 6 : 5))]) with boxxyerror fillcolor rgb block_hue[i + 1], \
         for [i = first[p]:(any_lost ? last[p] : first[p] - 1)] data index i using (lost(2)):1:(0):2:($1 - half):($1 + half):ytic(label[int(column(short ? 6 : 5))]) with boxxyerror fillcolor rgb lost_hue, \
         for [i = first[p]:(any_lost ? last[p] : first[p] - 1)] data index i using (lost(2)):1:(0):2:($1 - half):($1 + half) with boxxyerror \
             fillstyle transparent pattern 4 noborder fillcolor rgb hatch_hue, \
         for [i = first[p]:last[p]] data index i using (valid(2) ? NaN : 0.02):1:(0):(0.04):($1 - half):($1 + half):ytic(label[int(column(short ? 6 : 5))]) \
             with boxxyerror fillstyle transparent pattern 4 border fillcolor rgb ink, \
         for [i = first[p]:last[p]] data index i using (chars ? NaN : $2):($1 + under_bar):3:4 with xerrorbars pointtype 0 linewidth 1.5 linecolor rgb ink, \
         for [i = first[p]:last[p]] data index i using (valid(2) ? $2 : 0.04):($1 - over_bar):(said(valid(2) ? $2 : -1, valid(3) ? $3 : NaN, valid(4) ? $4 : NaN, int($8))) \
             with labels left offset (chars ? 0.8 : 0.5), 0 textcolor rgb ink font small, \
         for [i = first[p]:(printed ? last[p] : first[p] - 1)] data index i using 7:1 with points pointtype 12 pointsize 1.2 * dot linewidth 2 linecolor rgb alarm
    if (chars) { unset for [i = 1:1 + notes] label i }
}
