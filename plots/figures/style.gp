# The common style. The program has set before it: chars (1: drawn in characters), tex (1: the page sets its texts), dark,
# on_paper (1: of a paper's size), width, asked_height (0: as needed), size (of a letter: all three in pixels, on paper in
# points, or in characters), letter (the same as the terminal counts), title ('': none), how (', priced' of steps that were not
# measured), panels, notes, doubtful (plots.h), most_bar and most_method (letters of the longest), and arrays: panel (titles),
# first and last (blocks of data of each), series, label, note; of blocks: block_series, block_hue, block_mark, block_dash,
# block_rows.
#
# A figure's script sets form, names of axes and entries of the legend; its line '#layout' stands for layout.gp and the terminal;
# then it draws each panel after 'eval place'. end.gp draws the texts that belong to the page.

ink   = dark ? '#e6e6e6' : '#1a1a1a'
faint = dark ? '#3a4048' : '#dddddd'
page  = dark ? '#16191d' : '#ffffff'
alarm = '#d55e00'

# A letter's width and a line's height.
em = chars ? 1.0 : (tex ? 0.5 : 0.56) * size
line = chars ? 1.0 : 1.35 * size

# Steps between tics: even ones, at most n of them, of whole numbers or any.
rounded(step, ten) = step <= ten ? ten : step <= 2 * ten ? 2 * ten : step <= 5 * ten ? 5 * ten : 10 * ten
even(range, n) = range > 0 ? rounded(1.0 * range / n, 10.0 ** floor(log10(1.0 * range / n))) : 1
whole(range, n) = range < n ? 1 : even(range, n)

# Tics of a logarithmic axis from low to high, at most n, as a list: powers of two; or 1, 2 and 5 (of less than a decade, more
# of them; of many, powers of ten).
listed(list) = '(' . list[1:strlen(list) - 2] . ')'
twofold(v, high, by) = v > 1.0001 * high ? '' : sprintf("'%g' %.9g, ", v, v) . twofold(v * by, high, by)
powers(low, high, n) = listed(twofold(2.0 ** ceil(log(low) / log(2) - 1e-6), high, 2.0 ** ceil(log(high / low) / log(2) / n + 1e-6)))
array of_ten[6] = [1, 1.5, 2, 3, 5, 7]
decade(j, kinds) = int(floor(1.0 * j / kinds))
of_log(j, kinds) = 10.0 ** decade(j, kinds) * (kinds == 6 ? of_ten[1 + j - 6 * decade(j, 6)] : kinds == 3 ? (j - 3 * decade(j, 3) == 1 ? 2 : j - 3 * decade(j, 3) == 2 ? 5 : 1) : 1)
log_list(j, kinds, by, low, high) = of_log(j, kinds) > 1.0001 * high ? '' : \
    (of_log(j, kinds) < 0.9999 * low ? '' : sprintf("'%g' %.9g, ", of_log(j, kinds), of_log(j, kinds))) . log_list(j + by, kinds, by, low, high)
log_kinds(tens, n) = tens < 0.9 && 6 * tens < n + 1 ? 6 : 3 * tens < n + 1 ? 3 : 1
decimal(low, high, n) = listed(log_list(log_kinds(log10(high / low), n) * int(floor(log10(low))), log_kinds(log10(high / low), n), \
    log_kinds(log10(high / low), n) > 1 ? 1 : int(ceil(log10(high / low) / n)), low, high))

# Even ones as a list, for a short logarithmic axis.
even_list(v, high, step) = v > high + 1e-6 * step ? '' : sprintf("'%g' %.9g, ", v, v) . even_list(v + step, high, step)
evenly(low, high, n) = listed(even_list(ceil(low / even(high - low, n) - 1e-6) * even(high - low, n), high, even(high - low, n)))

# The point that is being drawn, and its value; of a lost one, nothing goes by it.
is_doubtful(n) = doubtful ? column(doubtful) == 1 : 0
is_lost(n) = doubtful ? column(doubtful) == 2 : 0
sound(n) = is_lost(0) || !valid(n) ? NaN : column(n)
lost(n) = is_lost(0) && valid(n) ? column(n) : NaN
written(number) = !is_lost(0) ? number . (is_doubtful(0) ? '*' : '') : chars ? '/' . number . '/' : number
any_lost = doubtful && !chars # characters have no grey
lost_hue = '#c4c4c4'
hatch_hue = '#8c8c8c'
half = chars ? 0 : 0.35 # of a bar: in characters it is a line of them
# Characters have one size, and a page that sets the texts gives them its own.
sized(of) = chars || tex ? '' : sprintf(',%.4g', of * letter)
small = sized(on_paper ? 0.9 : 0.85)
star = sized(1.3)
set border 3 linecolor rgb ink
set tics nomirror out scale 0.5 textcolor rgb ink font small
set grid linecolor rgb faint linetype 1 linewidth 0.7
set title textcolor rgb ink offset 0, -0.5
set style fill solid 1.0 noborder
set bars small
set samples 200
if (chars) { set grid noxtics noytics }

dot = 1 # the size of a mark; of pictures the terminal's

# A figure's script may set these.
form = 'curves'          # or 'bars', 'cells'
x_name = ''
y_name = ''
x_is_whole = 0
x_by_powers = 0          # 1: of two, 2: of ten
x_shared = 1             # all panels have one range
y_shared = 1
y_from = NaN             # ends of the axis; NaN: by the data
y_to = NaN
y_within = NaN           # a value that must be on it
y_letters = 5            # of the longest number at the axis
most_bars = 0            # of a panel
cell_rows = 0            # of a panel
cell_columns = 0
has_bar = 0              # 1: a colour bar on the right
grouped = 1              # panels that belong together are in one row

# The legend is the figure's, not a panel's. Kinds: curve (a line with marks), line, mark, box, band.
entries = 0
most_entry = 0           # letters
array entry_kind[100]
array entry_text[100]
array entry_letters[100]
array entry_hue[100]
array entry_mark[100]
array entry_dash[100]
entry(kind, text, letters, hue, mark, dash) = (entries = entries + 1, entry_kind[entries] = kind, entry_text[entries] = text, \
    entry_letters[entries] = letters, most_entry = letters > most_entry ? letters : most_entry, entry_hue[entries] = hue, entry_mark[entries] = mark, entry_dash[entries] = dash)
array seen[|series|]
do for [i = 1:|series|] { seen[i] = 0 }
# Each series once, by its first block.
enter(i, kind) = seen[block_series[i]] ? 0 : (seen[block_series[i]] = 1, \
    entry(kind, series[block_series[i]], strlen(series[block_series[i]]), block_hue[i], block_mark[i], block_dash[i]))
direct = 0               # 1: names stand at the ends of lines, if they fit, and there is no legend

# Those names: their texts, colours, places in shares of the picture, and the ends of the lines.
tags = 0
array tag_text[100]
array tag_hue[100]
array tag_x[100]
array tag_y[100]
array end_x[100]
array end_y[100]
