# Stacked bars, a step's time in parts: row propose forward verify observe other label_bar label_method doubtful, in milliseconds.
# From dark to light and back, so that grey print tells neighbours apart. They are no methods' colours.
form = 'bars'
do for [p = 1:panels] { if (block_rows[first[p] + 1] > most_bars) { most_bars = block_rows[first[p] + 1] } }
array part[5] = ['the method drafts', 'the model runs', 'tokens are accepted', 'the method learns', 'all else']
array part_hue[5] = ['#12304f', '#6f9fc8', '#c9dcec', '#9a6a12', '#d9d9d9']
do for [n = 1:5] { ok = entry('box', part[n], strlen(part[n]), part_hue[n], 1, 1) }
#layout
set grid noytics
set ytics scale 0
upto(n) = (n > 0 ? column(2) : 0) + (n > 1 ? column(3) : 0) + (n > 2 ? column(4) : 0) + (n > 3 ? column(5) : 0) + (n > 4 ? column(6) : 0)
stats data using (upto(5)) name 'V' nooutput
longest = V_max * (chars ? 1.15 : 1 + 8 * em / (inner - 8 * em))
do for [p = 1:panels] {
    eval place
    i = first[p]
    set xrange [0:longest]
    set xtics even(longest, x_most)
    set yrange [block_rows[i + 1] + 0.6:0.4]
    plot for [n = 1:5] data index i using (upto(n)):1:(upto(n - 1)):(upto(n)):($1 - half):($1 + half):ytic(label[int(column(short ? 8 : 7))]) \
             with boxxyerror fillcolor rgb part_hue[n] title (chars ? part[n] : ''), \
         for [n = 1:any_lost] data index i using (is_lost(0) ? upto(5) : NaN):1:(0):(upto(5)):($1 - half):($1 + half) with boxxyerror fillcolor rgb lost_hue, \
         for [n = 1:any_lost] data index i using (is_lost(0) ? upto(5) : NaN):1:(0):(upto(5)):($1 - half):($1 + half) with boxxyerror fillstyle transparent pattern 4 noborder fillcolor rgb hatch_hue, \
         data index i using (upto(5)):1:(written(sprintf('%.3g ms', upto(5)))) with labels left offset (chars ? 0.8 : 0.5), 0 textcolor rgb ink font small
    if (chars) { unset for [i = 1:1 + notes] label i }
}
