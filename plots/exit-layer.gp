set xlabel 'exit layer'
stats data using 1 name 'X' nooutput
if (X_max - X_min < 12) set xtics 1
