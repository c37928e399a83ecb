# Before a range is set: stats leaves out what is beyond it.
stats data using 1 name 'X' nooutput
set xlabel 'w: drafted tokens, or more, that a step accepted'
set ylabel 'share of steps'
set yrange [0:1]
set xtics whole(X_max - X_min)
