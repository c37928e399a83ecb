set xlabel 'tokens, or place among the rows of its source'
set ylabel 'share of steps that it won'
set yrange [0:1]
stats data using 1 name 'X' nooutput
if (X_max - X_min < 12) set xtics 1
