# Before a range is set: stats leaves out what is beyond it.
stats data using 1 name 'X' nooutput
set xlabel 'k'
set ylabel 'places, mean of a draft'
set yrange [0:*]
set xtics whole(X_max - X_min)
