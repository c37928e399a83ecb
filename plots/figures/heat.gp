# Cells over numbered columns and rows: x y value label_x label_y ridge ridge_rows doubtful. A cell that was not measured is hatched,
# a lost one is grey and hatched, in characters between slashes.
# level and levels: values that get a line, along the cells' borders; where ridge is 1 or more, operations bind. All panels
# have one scale and one colour bar.
form = 'cells'
stats data using 1:2 name 'G' nooutput
stats data using (sound(3)) name 'V' nooutput
stats data using 6 name 'R' nooutput
stats data using 7 name 'Q' nooutput
ridge = exists('R_min') ? R_min < 1 && R_max >= 1 : 0
has_bar = !chars && exists('V_min')
lowest = exists('V_min') ? V_min : 1
highest = exists('V_max') && V_max > lowest ? V_max : lowest * 1.01
cell_rows = G_max_y
stats data using (strlen(label[int($5)])) name 'T' nooutput
y_letters = T_max
# Told apart by dashes, and where a terminal has none, by their darkness. One alone is wider.
array dashes[3] = ['.', '-', 1]
array darker[3] = ['#e58a3c', '#d55e00', '#8c2d04']
level_dash(n) = |level| == 1 ? 1 : dashes[n]
level_hue(n) = |level| == 1 ? alarm : darker[n]
level_width = |level| == 1 ? 3 : 2
# Only lines that are there are in the legend.
do for [n = 1:|level|] { if (level[n] > lowest && level[n] <= highest) { ok = entry('line', sprintf('%.1f', level[n]), 3, level_hue(n), 1, level_dash(n)) } }
if (ridge) { ok = entry('line', 'computing binds, not reading', 28, '#56b4e9', 1, 1) }
#layout
set key off
set grid noxtics noytics
set tics scale 0
set logscale cb
set cbrange [lowest:highest]
light(v) = log(v / lowest) > 0.6 * log(highest / lowest)
told(v) = v < 9.995 ? sprintf('%.2f', v) : v < 99.95 ? sprintf('%.1f', v) : sprintf('%.0f', v)
shown(n) = written(told($3))
# Numbers as large as fit; none if they would be too small to read, since the colour bar has them, too.
cell = inner / G_max_x
in_cell = chars || tex ? 1 : cell / (6 * em) < tall / G_max_y / (1.2 * size) ? cell / (6 * em) : tall / G_max_y / (1.2 * size)
in_cell = in_cell > 0.9 ? 0.9 : in_cell
has_numbers = in_cell * size > 4.4 && (!tex || cell > 4.4 * em)
# The border to the left of a cell, or below it, where the value crosses v. The cells come row by row, from the left.
array below[G_max_x + 1]
left = NaN
crosses(a, b, v) = a == a && b == b ? (a < v) != (b < v) : 0
next_left(n, v) = (was = int($1) == 1 ? NaN : left, left = n == 3 ? sound(3) : valid(n) ? column(n) : NaN, crosses(was, left, v) ? $1 - 0.5 : NaN)
next_below(n, v) = (was = int($2) == 1 ? NaN : below[int($1)], below[int($1)] = n == 3 ? sound(3) : valid(n) ? column(n) : NaN, crosses(was, below[int($1)], v) ? $1 - 0.5 : NaN)
do for [p = 1:panels] {
    eval place
    i = first[p]
    set xrange [0.5:G_max_x + 0.5]
    set yrange [0.5:G_max_y + 0.5]
    if (p == panels && has_bar) {
        set colorbox vertical user origin screen 1 - (6 * em + 1.1 * line) / width, screen frame_bottom(panels > across ? across * (down - 1) + 1 : 1) \
            size screen 1.1 * size / width, screen frame_top(1) - frame_bottom(across * (down - 1) + 1) noborder
        set cblabel bar_name . how textcolor rgb ink font sized(on_paper ? 1 : 0.92) offset -0.8, 0
        set cbtics font small textcolor rgb ink scale 0.5
        n = int((frame_top(1) - frame_bottom(across * (down - 1) + 1)) * height / (1.6 * line))
        eval 'set cbtics ' . (highest < 3 * lowest ? evenly(lowest, highest, n < 2 ? 2 : n < 5 ? n : 5) : decimal(lowest, highest, n < 2 ? 2 : n))
    } else { unset colorbox }
    if (chars) {
        plot data index i using 1:2:(valid(3) ? shown(0) : '///'):xtic(label[int($4)]):ytic(label[int($5)]) with labels
        unset for [i = 1:1 + notes] label i
    } else {
        plot data index i using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):(sound(3)):xtic(label[int($4)]):ytic(label[int($5)]) with boxxyerror fillcolor palette, \
             data index i using (lost(3) == lost(3) ? $1 : NaN):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5) with boxxyerror fillcolor rgb lost_hue, \
             data index i using (lost(3) == lost(3) ? $1 : NaN):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5) with boxxyerror fillstyle transparent pattern 4 noborder fillcolor rgb hatch_hue, \
             data index i using (valid(3) ? NaN : $1):2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5) with boxxyerror fillstyle transparent pattern 4 border fillcolor rgb ink linewidth 0.5, \
             for [n = 1:|level|] data index i using (next_left(3, level[n])):($2 - 0.5):(0):(1) with vectors nohead linewidth level_width + 2.5 linecolor rgb '#ffffff', \
             for [n = 1:|level|] data index i using (next_below(3, level[n])):($2 - 0.5):(1):(0) with vectors nohead linewidth level_width + 2.5 linecolor rgb '#ffffff', \
             for [n = 1:ridge] data index i using (next_left(6, 1)):($2 - 0.5):(0):(1) with vectors nohead linewidth 4.5 linecolor rgb '#56b4e9', \
             for [n = 1:ridge] data index i using (next_below(6, 1)):($2 - 0.5):(1):(0) with vectors nohead linewidth 4.5 linecolor rgb '#56b4e9', \
             for [n = 1:|level|] data index i using (next_left(3, level[n])):($2 - 0.5):(0):(1) with vectors nohead linewidth level_width linecolor rgb level_hue(n) dashtype level_dash(n), \
             for [n = 1:|level|] data index i using (next_below(3, level[n])):($2 - 0.5):(1):(0) with vectors nohead linewidth level_width linecolor rgb level_hue(n) dashtype level_dash(n), \
             data index i using (has_numbers && valid(3) ? $1 : NaN):2:(shown(0)):(is_lost(0) || light($3) ? 0x1a1a1a : 0xffffff) with labels font sized(in_cell) textcolor rgb variable
    }
}
