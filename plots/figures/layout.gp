# Where all stands: under the title panels in a grid, one name of each axis for all of them, the legend, the notes.
# Everything is in the units of width until `place`, which is in shares of the picture. In characters, asked_height is a panel's.

headings = panels > 1 || title ne ''
if (form eq 'bars') {
    short = (most_bar + 1) * em > 0.4 * width && !chars
    y_letters = short ? most_method : most_bar
}
room_left = y_name eq '' ? 0.3 * em : 1.2 * line
room_right = has_bar ? 6.8 * em + 1.4 * line : 0
beside = (y_letters + (form eq 'curves' ? 0.7 : 1.8)) * em
# Numbers in cells need 5 points at least.
cells_least = cell_columns * 4.6 * 5 / size * em
least = form eq 'cells' && cells_least > 13 * size ? cells_least : (form eq 'bars' ? (on_paper ? 13 : 30) : form eq 'curves' ? 14 : 13) * size
# Names at lines must leave most of the room to the lines.
alongside = panels * (beside + least + (most_entry + 2) * em) < width - room_left - room_right ? panels : 1
direct = form eq 'curves' && direct && !chars && entries <= 6 && panels <= 2 && (most_entry + 1.5) * em < 0.3 * width / alongside
behind = direct ? (most_entry + 2) * em : 1.6 * em
fitting = int(floor((width - room_left - room_right) / (beside + least + behind)))
across = fitting < 1 || chars ? 1 : fitting > panels ? panels : fitting > 4 ? 4 : fitting
down = int(ceil(1.0 * panels / across))
across = int(ceil(1.0 * panels / down))
if (across > grouped) { across = across - across % grouped }
down = int(ceil(1.0 * panels / across))
wide = (width - room_left - room_right) / across
# A page's texts may have escapes, which must stay whole.
cut(text, room) = tex || strlen(text) * em <= room ? text : text[1:int(room / em) - 3] . '...'
# Titles that would be cut to the same one get more room.
do for [fewer = 1:3] {
    alike = 0
    do for [p = 2:panels] { do for [q = 1:p - 1] { if (cut(panel[p], wide) eq cut(panel[q], wide)) { alike = 1 } } }
    if (alike && across > 1) {
        across = across - 1
        down = int(ceil(1.0 * panels / across))
        wide = (width - room_left - room_right) / across
    }
}
inner = wide - beside - behind

over = headings ? 1.45 * line : 0.5 * line
under = 1.45 * line
# The legend's entries, row by row, as many in each as fit.
array entry_x[100]
array entry_row[100]
array row_wide[100]
entry_rows = entries == 0 || direct || chars ? 0 : 1
at = 0
do for [n = 1:(entry_rows ? entries : 0)] {
    needed = (entry_letters[n] + 5.5) * em
    if (at > 0 && at + needed > width) { entry_rows = entry_rows + 1; at = 0 }
    entry_x[n] = at
    entry_row[n] = entry_rows
    at = at + needed
    row_wide[entry_rows] = at - em
}
head = title eq '' ? 0.15 * line : 2 * line
foot = (x_name eq '' ? 0.2 : 1.2) * line + entry_rows * line + (entry_rows ? 0.3 * line : 0) + notes * line
most_high = form ne 'cells' ? 19 * size : cell_rows < 3 ? 6 * size : cell_rows * 3 * size
wanted = form eq 'bars' ? most_bars * 1.6 * size + 0.3 * size : form eq 'curves' ? 0.62 * inner : cell_rows * 1.7 * size
if (form eq 'cells' && 0.6 * inner > wanted) { wanted = 0.6 * inner }
if (form ne 'bars') { wanted = wanted < 8 * size ? 8 * size : wanted > most_high ? most_high : wanted }
height = asked_height > 0 ? asked_height : head + down * (over + wanted + under) + foot
# A page holds 210 mm and a caption.
fits_page = (595 - head - foot) / down - over - under > (form eq 'bars' ? most_bars * 1.2 * size : 5 * size)
if (on_paper && asked_height <= 0 && height > 595 && fits_page) { height = 595 }
high = (height - head - foot) / down
tall = high - over - under
lowest_tall = form eq 'bars' ? most_bars * 1.1 * size : 2.5 * size
if (!chars && (tall < lowest_tall || inner < 5 * size)) {
    printerr sprintf('it is too %s for its panels: give %s', tall < lowest_tall ? 'low' : 'narrow', \
        tall < lowest_tall ? sprintf('--height %.0f or more', ceil((height + down * (lowest_tall - tall)) / 72 * 25.4)) : 'a greater --width or a smaller --size')
    exit status 1
}

if (chars) {
    height = down * (form eq 'bars' ? 6 + 2 * most_bars : asked_height) + notes + 3
    line = 1.0 / height
    foot = line * (notes + 1.7)
    head = 2.0 * line
    high = (1.0 - head - foot) / down
    inner = width - y_letters - 10
    tall = high * height - 6
    place = 'set origin 0, foot + (down - p) * high; set size 1, high; set title panel[p]; set xlabel x_name; set ylabel y_name'
    set key outside right top Left reverse samplen 2 noautotitle textcolor rgb ink
    set label 1 title at screen 0.01, screen 1.0 - 0.8 * line left
    do for [i = 1:notes] { set label 1 + i note[i] at screen 0.01, screen line * (notes - i + 0.6) left }
} else {
    place = 'set lmargin at screen frame_left(p); set rmargin at screen frame_right(p); set tmargin at screen frame_top(p); ' . \
        'set bmargin at screen frame_bottom(p); if (headings) { eval head_of }'
    set key off
}
frame_left(p) = (room_left + ((p - 1) % across) * wide + beside) / width
frame_right(p) = frame_left(p) + inner / width
frame_top(p) = 1 - (head + ((p - 1) / across) * high + over) / height
frame_bottom(p) = frame_top(p) - tall / height
# A panel's title is over its frame, or if it is longer, over all of the panel.
centred(text) = strlen(text) * em <= inner + 2 * behind
head_of = 'set label 99 cut(panel[p], wide) at screen centred(panel[p]) ? (frame_left(p) + frame_right(p)) / 2 : frame_left(p) + (wide / 2 - beside) / width, ' . \
    'screen frame_top(p) + 0.6 * line / height center textcolor rgb ink font sized(on_paper ? 1 : 0.92)'
x_wide = (x_by_powers == 2 ? 7 : 5) * em
x_most = 1.0 * inner / x_wide < 2 ? 2 : int(inner / x_wide) # tics
y_most = tall / (1.8 * line * (chars ? height : 1)) < 2 ? 2 : int(tall / (1.8 * line * (chars ? height : 1)))
x_most = x_most > 8 ? 8 : x_most
y_most = y_most > 6 ? 6 : y_most
