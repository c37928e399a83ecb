# Cells over numbered columns and rows: x y value label_x label_y ridge ridge_rows doubtful. A cell that was not measured is hatched,
# a lost one is grey and hatched, in characters between slashes.
# level and levels: values that get a line, along the cells' borders, with its value where it leaves the panel; where ridge is 1 or
# more, operations bind. A value has its colour in every figure, by the array stop.
form = 'cells'
stats data using 1:2 name 'G' nooutput
stats data using (sound(3)) name 'V' nooutput
stats data using 6 name 'R' nooutput
ridge = exists('R_min') ? R_min < 1 && R_max >= 1 : 0
has_bar = !chars && exists('V_min')
lowest = exists('V_min') ? V_min : 1
highest = exists('V_max') ? V_max : 1
cell_rows = G_max_y
cell_columns = G_max_x
grouped = panels % 3 == 0 && strlen(panel[1]) > 9 && panel[1][1:9] eq 'measured,' ? 3 : 1
stats data using (strlen(label[int($5)])) name 'T' nooutput
y_letters = T_max
# Told apart by dashes, and where a terminal has none, by their darkness. One alone is wider.
array dashes[3] = ['.', '-', 1]
array darker[3] = ['#e58a3c', '#d55e00', '#8c2d04']
level_dash(n) = |level| == 1 ? 1 : dashes[n]
level_hue(n) = |level| == 1 ? alarm : darker[n]
level_width = |level| == 1 ? 3 : 2
if (ridge) { ok = entry('line', 'computing binds, not reading', 28, '#56b4e9', 1, 1) }
#layout
set key off
set grid noxtics noytics
set tics scale 0
set cbrange [0:1]
within(v, i) = i > |stop| ? 1 : v < stop[i] ? (i - 2 + log(v / stop[i - 1]) / log(stop[i] / stop[i - 1])) / (|stop| - 1) : within(v, i + 1)
shade(v) = v != v ? NaN : v <= stop[1] ? 0 : within(v, 2)
light(v) = shade(v) > 0.47
# Numbers as large as fit, with fewer digits where there is little room; none if they would be too small to read, since the colour bar has them, too.
cell = inner / G_max_x
fits(letters) = cell / (letters * em) < tall / G_max_y / (1.2 * size) ? cell / (letters * em) : tall / G_max_y / (1.2 * size)
is_brief = !chars && !tex && fits(6) * size < 5
in_cell = chars || tex ? 1 : fits(is_brief ? 4 : 6)
in_cell = in_cell > 0.9 ? 0.9 : in_cell
told(v) = v < (is_brief ? 0 : 9.995) ? sprintf('%.2f', v) : v < (is_brief ? 9.95 : 99.95) ? sprintf('%.1f', v) : sprintf('%.0f', v)
shown(n) = written(told($3))
stats data using (strlen(label[int($4)])) name 'L' nooutput
if (!chars && !tex && cell < 0.9 * (L_max + 0.7) * em) { x_font = sized(cell / ((L_max + 0.7) * em)); set xtics font x_font }
has_numbers = in_cell * size > 5 && (!tex || cell > 4.4 * em)
# The border to the left of a cell, or below it, where the value crosses v. The cells come row by row, from the left.
array below[G_max_x + 1]
left = NaN
crosses(a, b, v) = a == a && b == b ? (a < v) != (b < v) : 0
next_left(n, v) = (was = int($1) == 1 ? NaN : left, left = n == 3 ? sound(3) : valid(n) ? column(n) : NaN, crosses(was, left, v) ? $1 - 0.5 : NaN)
next_below(n, v) = (was = int($2) == 1 ? NaN : below[int($1)], below[int($1)] = n == 3 ? sound(3) : valid(n) ? column(n) : NaN, crosses(was, below[int($1)], v) ? $1 - 0.5 : NaN)
# A level has its value at the top of its line, or if it has no upright part, at its right; equal places share a text.
array level_x[3]
array level_y[3]
level_colour = level_hue(|level|)
do for [p = 1:panels] {
    eval place
    i = first[p]
    do for [n = 1:chars ? 0 : |level|] {
        level_x[n] = NaN
        level_y[n] = 0
        stats data index i using (v = next_left(3, level[n]), v == v && $2 + 0.5 > level_y[n] ? (level_x[n] = v, level_y[n] = $2 + 0.5, 1) : 1) nooutput
        if (level_x[n] != level_x[n]) {
            stats data index i using (v = next_below(3, level[n]), v == v && $1 == G_max_x ? (level_x[n] = G_max_x + 0.5, level_y[n] = $2 - 0.5, 1) : 1) nooutput
        }
    }
    do for [n = 1:chars ? 0 : |level|] {
        told_there = ''
        do for [m = 1:|level|] { if (level_x[m] == level_x[n] && level_y[m] == level_y[n]) { told_there = told_there . (told_there eq '' ? '' : ' ') . sprintf('%.1f', level[m]) } }
        if (told_there ne '') {
            set object 200 + n rectangle center first level_x[n], first level_y[n] size screen (strlen(told_there) + 0.4) * 0.8 * em / width, screen 0.95 * size / height \
                front fillcolor rgb page fillstyle solid noborder
            set label 200 + n told_there at first level_x[n], first level_y[n] center front textcolor rgb dark ? darker[1] : level_colour font small
        }
    }
    set xrange [0.5:G_max_x + 0.5]
    set yrange [0.5:G_max_y + 0.5]
    if (p == panels && has_bar) {
        set colorbox vertical user origin screen 1 - (6.8 * em + 1.1 * line) / width, screen frame_bottom(panels > across ? across * (down - 1) + 1 : 1) \
            size screen 1.1 * size / width, screen frame_top(1) - frame_bottom(across * (down - 1) + 1) noborder
        set cblabel bar_name . how textcolor rgb ink font sized(on_paper ? 1 : 0.92) offset -0.8, 0
        set cbtics font small textcolor rgb ink scale 0.5
        n = (frame_top(1) - frame_bottom(across * (down - 1) + 1)) * height / (1.2 * line) < |stop| ? 2 : 1 # of a low bar, every other one
        set cbtics (sprintf('%g', stop[3]) shade(stop[3]))
        do for [i = 1:|stop|] { if ((i - 3) % n == 0) { set cbtics add (sprintf('%g', stop[i]) shade(stop[i])) } }
        i = first[p]
    } else { unset colorbox }
    if (chars) {
        plot data index i using 1:2:(valid(3) ? shown(0) : '///'):xtic(label[int($4)]):ytic(label[int($5)]) with labels
        unset for [i = 1:1 + notes] label i
    } else {
        plot data index i using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):(shade(sound(3))):xtic(label[int($4)]):ytic(label[int($5)]) with boxxyerror fillcolor palette, \
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
    do for [n = 1:|level|] { unset label 200 + n; unset object 200 + n }
}
