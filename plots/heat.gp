# Cells over numbered columns and rows: x y value label_x label_y. A cell that was not measured is hatched;
# `levels` are contours.
set key off
set grid noxtics noytics
set tics scale 0
unset colorbox
set contour base
light(v) = log(v / lowest) > 0.6 * log(highest / lowest)
do for [p = 1:panels] {
    set origin left_of(p), bottom_of(p)
    set size wide, high
    set title panel[p]
    i = first[p]
    set autoscale xy
    stats data index i using 3 name 'V' nooutput
    stats data index i using 1:2 name 'G' nooutput
    lowest = V_min
    highest = V_max > V_min ? V_max : V_min * 1.01
    set xrange [0.5:G_max_x + 0.5]
    set yrange [0.5:G_max_y + 0.5]
    set cbrange [lowest:highest]
    set logscale cb
    if (chars) {
        plot data index i using 1:2:(valid(3) ? sprintf('%.2f', $3) : '///'):xtic(label[int($4)]):ytic(label[int($5)]) with labels
    } else {
        set table $contours
        unset surface
        eval 'set cntrparam levels discrete ' . levels
        splot data index i using 1:2:3
        set surface
        unset table
        plot data index i using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):3:xtic(label[int($4)]):ytic(label[int($5)]) with boxxyerror fillcolor palette, \
             data index i using (valid(3) ? NaN : $1):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5) with boxxyerror fillstyle transparent pattern 4 border fillcolor rgb ink linewidth 0.5, \
             data index i using 1:2:(valid(3) ? sprintf('%.2f', $3) : ''):(light($3) ? 0x1a1a1a : 0xffffff) with labels font ',10' textcolor rgb variable, \
             $contours using 1:2 with lines linewidth 2 linecolor rgb '#d55e00'
    }
    unset for [i = 1:1 + |note|] label i
}
unset multiplot
