set xlabel 'w: drafted tokens, or more, that a step accepted'
set ylabel 'share of steps'
set yrange [0:1]
stats data using 1 name 'X' nooutput
if (X_max - X_min < 12) set xtics 1
