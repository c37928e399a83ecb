# Cells over numbered columns and rows: x y value label_x label_y ridge ridge_rows doubtful. A cell that was not measured is hatched.
# `level` and `levels` are contours of the value; where ridge, in rows of the ridge, is 1, operations bind.
set key outside center bottom horizontal samplen 1.5 width -1 height (chars ? 0 : 1.2)
set grid noxtics noytics
set tics scale 0
set xlabel offset 0, 0.5
unset colorbox
set contour base
contour_dash(n) = |level| == 1 ? 1 : n == 1 ? 3 : n == 2 ? 2 : 1
contour_width = |level| == 1 ? 4 : 2
light(v) = log(v / lowest) > 0.6 * log(highest / lowest)
mark(n) = is_doubtful(0) ? '*' : ''
$ridge << NONE
NONE
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    i = first[p]
    set autoscale xy
    stats data index i using 3 name 'V' nooutput
    stats data index i using 1:2 name 'G' nooutput
    stats data index i using 6 name 'R' nooutput
    stats data index i using 7 name 'Q' nooutput
    ridge = exists('R_min') ? R_min < 1 && R_max > 1 : 0
    ridge_rows = exists('Q_min') ? Q_min : 0
    lowest = V_min
    highest = V_max > V_min ? V_max : V_min * 1.01
    set xrange [0.5:G_max_x + 0.5]
    set yrange [0.5:G_max_y + 0.5]
    set cbrange [lowest:highest]
    set logscale cb
    if (chars) {
        plot data index i using 1:2:(valid(3) ? sprintf('%.2f', $3) . mark(0) : '///'):xtic(label[int($4)]):ytic(label[int($5)]) with labels
    } else {
        unset surface
        set table $contours
        eval 'set cntrparam levels discrete ' . levels
        splot data index i using 1:2:3
        unset table
        if (ridge) {
            set table $ridge
            set cntrparam levels discrete 1
            splot data index i using 1:2:6
            unset table
        }
        set surface
        plot data index i using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):3:xtic(label[int($4)]):ytic(label[int($5)]) with boxxyerror fillcolor palette, \
             data index i using (valid(3) ? NaN : $1):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5) with boxxyerror fillstyle transparent pattern 4 border fillcolor rgb ink linewidth 0.5, \
             data index i using 1:2:(valid(3) ? sprintf('%.2f', $3) . mark(0) : ''):(light($3) ? 0x1a1a1a : 0xffffff) with labels font small textcolor rgb variable, \
             for [n = 1:|level|] $contours using 1:(abs($3 - level[n]) < 1e-6 ? $2 : NaN) with lines linewidth contour_width linecolor rgb alarm dashtype contour_dash(n), \
             for [n = 1:|level|] keyentry with lines linewidth contour_width linecolor rgb alarm dashtype contour_dash(n) title sprintf('%.1f', level[n]), \
             for [n = 1:(ridge ? 1 : 0)] '$ridge' using 1:2 with lines linewidth 2.5 linecolor rgb '#56b4e9', \
             for [n = 1:(ridge ? 1 : 0)] keyentry with lines linewidth 2.5 linecolor rgb '#56b4e9' title sprintf('from %d rows on computing binds, not reading', ridge_rows)
    }
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
