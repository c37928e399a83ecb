set xlabel 'devices, in powers of two'
set ylabel 'predicted speedup'
set logscale x 2
x_by_powers = 1
