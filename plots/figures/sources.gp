# Before a range is set: stats leaves out what is beyond it.
stats data using 1 name 'X' nooutput
set xlabel 'tokens, or rows'
set ylabel 'share of the steps'
set yrange [0:1]
set xtics whole(X_max - X_min)
