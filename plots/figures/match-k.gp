set xlabel 'k'
set ylabel 'places, mean of a draft'
set yrange [0:*]
x_is_whole = 1
