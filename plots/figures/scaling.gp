set xlabel 'devices, in powers of two'
set ylabel 'predicted speedup'
set logscale x 2
