# The contour of 1: beyond it a method no longer pays.
set xlabel 'sequences that share each step'
set ylabel 'bits of a weight'
array level[1] = [1.0]
levels = '1.0'
