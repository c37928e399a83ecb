# The common style. The program has said before it: chars (1: drawn in characters), tex (1: the page sets its texts), dark, the figure's title,
# panels, across (panels beside each other), down, pixels (the height; in lines where chars),
# doubtful (plots.h), and arrays: panel (titles), first and last
# (blocks of data of each), series, label, note; of blocks: block_series, block_colour, block_rows.

ink   = dark ? '#e6e6e6' : '#1a1a1a'
faint = dark ? '#3a4048' : '#dddddd'
paper = dark ? '#16191d' : '#ffffff'
alarm = '#d55e00'

# Okabe and Ito's colours, told apart by colour-blind eyes, then ten more; each has a mark and a dash of its own for grey print.
array hue[18] = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#888888', '#b09a00', \
    '#7b6fd0', '#a33b3b', '#6b8e23', '#17a2a2', '#a0724a', '#c2b280', '#e377c2', '#2b4a8b', '#8fce5a', '#5f4b3f']
array mark[8] = [7, 5, 9, 11, 13, 6, 4, 8]
colour(s) = hue[1 + (s - 1) % 18]
point_of(s) = mark[1 + (s - 1 + (s - 1) / 8) % 8]
dash_of(s) = 1 + ((s - 1) / 8) % 4

# From dark to light at an even pace, so that grey print keeps the order (the stops are those of cividis). A page sets
# all numbers in black: it has the lighter half.
if (tex) {
    set palette defined (0 '#a3a8b0', 1 '#b3b19f', 2 '#c8b866', 3 '#fee838')
} else {
    set palette defined (0 '#00224e', 1 '#35456c', 2 '#666970', 3 '#948e77', 4 '#c8b866', 5 '#fee838')
}

# Steps between tics: of whole numbers, of any, and of powers of two up from the least.
whole(range) = range < 9 ? 1 : ceil(range / 8.0)
decade(range) = 10 ** floor(log10(range / 4.0))
twofold(ratio) = ratio < 24 ? 2 : ratio < 600 ? 4 : 16
even(range) = decade(range) * (range / 4.0 > 5 * decade(range) ? 10 : range / 4.0 > 2 * decade(range) ? 5 : 2)

x_is_whole = 0
x_by_powers = 0
y_range = '[0 < *:*]' # nothing is less than 0, nor are the tics
half = chars ? 0 : 0.35 # of a bar: in characters it is a line of them
# Characters have one size, and a page that sets the texts gives them its own.
sized(points) = chars || tex ? '' : sprintf(',%d', points)
small = sized(10)
is_doubtful(n) = doubtful ? column(doubtful) > 0 : 0 # the point that is being drawn
star = chars ? '' : ',16'
set border 3 linecolor rgb ink
set tics nomirror out scale 0.6 textcolor rgb ink font small
set grid linecolor rgb faint linetype 1 linewidth 0.7
set xlabel textcolor rgb ink font (sized(11))
set ylabel textcolor rgb ink font (sized(11))
set key textcolor rgb ink font small outside right top Left reverse samplen 2 width (chars ? 0 : 2) noautotitle
if (tex && across > 1) { set key outside center bottom horizontal height 1 }
set title textcolor rgb ink font (sized(11)) offset 0, -0.5
set style fill solid 1.0 noborder
set bars small
set samples 200

# Where panel p stands: under the title, over the notes.
line = (chars ? 1.0 : 18.0) / pixels
foot = line * (|note| + (chars ? 1.7 : 0.7))
head = 2.0 * line
wide = 1.0 / across
high = (1.0 - head - foot) / down
left_of(p) = ((p - 1) % across) * wide
bottom_of(p) = foot + (down - 1 - (p - 1) / across) * high

if (chars) set grid noxtics noytics
set multiplot
set label 1 title at screen 0.01, screen 1.0 - 0.8 * line left textcolor rgb ink font (sized(15))
do for [i = 1:|note|] {
    set label 1 + i note[i] at screen 0.01, screen line * (|note| - i + 0.6) left textcolor rgb ink font small
}
