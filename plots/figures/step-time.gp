# Stacked bars, a step's time in parts: row propose forward verify observe other label_bar doubtful, in milliseconds.
set xlabel 'milliseconds a step'
set key vertical
set grid noytics
set ytics scale 0
array part[5] = ['the method drafts', 'the model runs', 'tokens are accepted', 'the method learns', 'all else']
upto(n) = (n > 0 ? column(2) : 0) + (n > 1 ? column(3) : 0) + (n > 2 ? column(4) : 0) + (n > 3 ? column(5) : 0) + (n > 4 ? column(6) : 0)
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    i = first[p]
    set autoscale xy
    stats data index i using (upto(5)) name 'V' nooutput
    set xrange [0:1.15 * V_max]
    set yrange [block_rows[i + 1] + 0.6:0.4]
    plot for [n = 1:5] data index i using (upto(n)):1:(upto(n - 1)):(upto(n)):($1 - half):($1 + half):ytic(label[int($7)]) \
             with boxxyerror fillcolor rgb colour(n) title part[n], \
         data index i using (upto(5)):1:(sprintf('%.3g ms', upto(5)) . (is_doubtful(0) ? '*' : '')) with labels left offset 0.8, 0 textcolor rgb ink font small
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
