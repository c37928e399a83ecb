stats data using 1 name 'X' nooutput
set xlabel 'exit layer'
set xtics whole(X_max - X_min)
