# Lines over numbers: x y low high doubtful, a line a series; low and high, where known, are an interval, or where band is 1 and a
# block has more than one x, a band. A panel of one x has its neighbours beside it.
if (!exists('band')) { band = 0 }
do for [i = 1:|block_series|] { ok = enter(i, 'curve') }
direct = entries > 1 || panels == 1
is_band(i) = band && block_rows[i + 1] > 1
# Bars in place of bands are moved apart: bands can be seen through each other, bars can not.
aside(i) = band && block_rows[i + 1] == 1 ? 2 ** (0.06 * (block_series[i + 1] - 0.5 * (|series| + 1))) : 1
bands = 0
do for [i = 0:|block_rows| - 1] { bands = bands || is_band(i) }
if (band) { direct = 0 }
if (bands) { ok = entry('band', '95 of 100 resamples', 19, ink, 1, 1) }
#layout
# Ranges of the blocks from a to b, intervals included. Of a value that stats leaves out, another stands in.
set_x = 'stats data index a:b using 1:(1) name "X" nooutput'
set_y = 'stats data index a:b using (valid(3) && $3 < $2 ? $3 : $2) name "L" nooutput; stats data index a:b using (valid(4) && $4 > $2 ? $4 : $2) name "H" nooutput'
do for [p = 1:panels] {
    eval place
    a = x_shared ? 0 : first[p]
    b = x_shared ? last[panels] : last[p]
    unset logscale
    set autoscale xy
    eval set_x
    x_low = X_min_x
    x_high = X_max_x
    if (x_by_powers) {
        x_end = x_high > x_low ? (x_high / x_low) ** 0.04 : 2
        x_first = x_low / x_end
        x_last = x_high * x_end
        eval 'set xtics ' . (x_by_powers == 1 && x_high >= 4 * x_low ? powers(x_low, x_high, x_most) : decimal(x_first, x_last, x_most))
    } else {
        x_end = x_high > x_low ? 0.04 * (x_high - x_low) : 1
        x_first = x_low >= 0 && x_low < x_end ? 0 : x_low - x_end
        x_last = x_high + x_end
        if (x_is_whole) { set xtics whole(x_high - x_low, x_most) } else { set xtics even(x_high - x_low, x_most) }
    }
    a = y_shared ? 0 : first[p]
    b = y_shared ? last[panels] : last[p]
    eval set_y
    y_low = y_within < L_min ? y_within : L_min
    y_high = y_within > H_max ? y_within : H_max
    y_end = y_high > y_low ? 0.06 * (y_high - y_low) : 0.1 * abs(y_high) + (y_high == 0)
    y_low = y_from == y_from ? y_from : y_low >= 0 && y_low < y_end ? 0 : y_low - y_end
    y_high = y_to == y_to ? y_to : y_high > y_low ? y_high + y_end : y_low + 1
    if (x_by_powers) { set logscale x 2 }
    set xrange [x_first:x_last]
    set yrange [y_low:y_high]
    set ytics even(y_high - y_low, y_most)
    plot for [i = first[p]:(bands && !chars ? last[p] : first[p] - 1)] data index i using 1:(is_band(i) ? sound(3) : NaN):4 with filledcurves fillstyle transparent solid 0.18 \
             linecolor rgb block_hue[i + 1], \
         for [i = first[p]:last[p]] data index i using ($1 * aside(i)):(chars || is_band(i) ? NaN : sound(2)):3:4 with yerrorbars pointtype 0 linewidth 1 linecolor rgb block_hue[i + 1], \
         for [i = first[p]:last[p]] data index i using ($1 * aside(i)):(sound(2)) with linespoints linewidth 2 pointsize 0.8 * dot \
             linecolor rgb block_hue[i + 1] pointtype block_mark[i + 1] dashtype block_dash[i + 1] \
             title (chars ? series[block_series[i + 1]] : ''), \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using ($1 * aside(i)):(lost(2)) with points pointsize 0.8 * dot \
             linecolor rgb hatch_hue pointtype block_mark[i + 1], \
         for [i = first[p]:(doubtful ? last[p] : first[p] - 1)] data index i using (is_doubtful(0) ? $1 : NaN):2:('*') with labels offset 0.6, 0.3 textcolor rgb ink font star
    if (direct) {
        unset logscale
        set autoscale xy
        from = tags
        do for [i = first[p]:last[p]] {
            last_x = NaN
            stats data index i using ($2 == $2 ? (last_x = $1, last_y = $2) : 0) nooutput
            if (last_x == last_x) {
                tags = tags + 1
                tag_text[tags] = series[block_series[i + 1]]
                tag_hue[tags] = tex ? ink : block_hue[i + 1]
                end_x[tags] = frame_left(p) + (frame_right(p) - frame_left(p)) * \
                    (x_by_powers ? log(last_x / x_first) / log(x_last / x_first) : (last_x - x_first) / (x_last - x_first))
                end_y[tags] = frame_bottom(p) + (frame_top(p) - frame_bottom(p)) * (last_y - y_low) / (y_high - y_low)
                tag_x[tags] = frame_right(p)
                tag_y[tags] = end_y[tags]
            }
        }
        # Names that would overlap move apart: sorted from below, each at least a line over the one before it, then down from the top.
        array order[100]
        count = tags - from
        do for [n = 1:count] { order[n] = from + n }
        do for [n = 2:count] { do for [m = 0:n - 2] { k = n - m; if (tag_y[order[k]] < tag_y[order[k - 1]]) { swap = order[k]; order[k] = order[k - 1]; order[k - 1] = swap } } }
        gap = 1.1 * size / height
        do for [n = 2:count] { if (tag_y[order[n]] < tag_y[order[n - 1]] + gap) { tag_y[order[n]] = tag_y[order[n - 1]] + gap } }
        limit = frame_top(p)
        do for [n = 1:count] { k = order[count + 1 - n]; if (tag_y[k] > limit) { tag_y[k] = limit } ; limit = tag_y[k] - gap }
    }
    if (chars) { unset for [i = 1:1 + notes] label i }
}
