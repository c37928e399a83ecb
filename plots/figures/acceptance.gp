set xlabel 'position in the draft'
set ylabel 'share of steps that accept it'
y_range = '[0:1]'
x_is_whole = 1
