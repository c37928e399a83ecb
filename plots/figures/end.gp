# The texts of the page: an empty plot over all of it.
if (!chars) {
    unset title; unset border; unset tics; unset xlabel; unset ylabel; unset arrow; unset object; unset label
    unset colorbox; unset grid; unset logscale
    set offsets 0, 0, 0, 0
    set lmargin at screen 0
    set rmargin at screen 1
    set tmargin at screen 1
    set bmargin at screen 0
    named = sized(on_paper ? 1 : 0.92)
    if (title ne '') { set label 1 title at screen 0.4 * em / width, screen 1 - 0.9 * line / height left textcolor rgb ink font sized(1.25) }
    set label 2 x_name at screen (room_left + beside + (width - room_left - room_right - beside - behind) / 2) / width, screen (foot - 0.7 * line) / height \
        center textcolor rgb ink font named
    set label 3 y_name at screen 0.65 * line / width, screen (foot + (height - foot - head) / 2) / height center rotate by 90 textcolor rgb ink font named
    do for [i = 1:notes] { set label 3 + i note[i] at screen 0.4 * em / width, screen (notes - i + 0.6) * line / height left textcolor rgb ink font small }
    from_left(n) = (width - row_wide[entry_row[n]]) / 2 + entry_x[n]
    from_foot(n) = (notes + entry_rows - entry_row[n] + 0.6) * line
    do for [n = 1:(direct ? 0 : entries)] {
        kind = entry_kind[n]
        set label 100 + n entry_text[n] at screen (from_left(n) + 3.2 * em) / width, screen from_foot(n) / height left textcolor rgb ink font small
        if (kind eq 'line' || kind eq 'curve') {
            # Of a width of its own: gnuplot's SVG forgets the dashes of a line that is drawn as the last one was.
            set arrow 100 + n from screen (from_left(n) + 0.2 * em) / width, screen from_foot(n) / height to screen (from_left(n) + 2.5 * em) / width, screen from_foot(n) / height \
                nohead linewidth 2 + 0.001 * n linecolor rgb entry_hue[n] dashtype entry_dash[n]
        }
        if (kind eq 'mark' || kind eq 'curve') {
            set label 200 + n '' at screen (from_left(n) + 1.35 * em) / width, screen from_foot(n) / height point pointtype entry_mark[n] pointsize 0.8 * dot linecolor rgb entry_hue[n]
        }
        if (kind eq 'box' || kind eq 'band') {
            set object 100 + n rectangle from screen (from_left(n) + 0.7 * em) / width, screen (from_foot(n) - 0.3 * size) / height \
                to screen (from_left(n) + 2.4 * em) / width, screen (from_foot(n) + 0.3 * size) / height \
                fillcolor rgb entry_hue[n] fillstyle transparent solid (kind eq 'band' ? 0.25 : 1) noborder
        }
    }
    do for [n = 1:tags] {
        set label 300 + n tag_text[n] at screen tag_x[n] + 0.5 * em / width, screen tag_y[n] left textcolor rgb (dark ? ink : tag_hue[n]) font small
        if (abs(tag_y[n] - end_y[n]) * height > 0.4 * size || (tag_x[n] - end_x[n]) * width > 2 * size) {
            set arrow 300 + n from screen end_x[n] + 0.6 * em / width, screen end_y[n] to screen tag_x[n] + 0.2 * em / width, screen tag_y[n] \
                nohead linewidth 0.6 + 0.001 * n linecolor rgb tag_hue[n]
        }
    }
    plot [0:1][0:1] NaN notitle
}
unset multiplot
