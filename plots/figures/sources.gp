set xlabel 'tokens, or rows'
set ylabel 'share of the steps'
set yrange [0:1]
x_is_whole = 1
