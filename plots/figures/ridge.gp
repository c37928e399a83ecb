# The line at 1: beyond it a method no longer pays.
x_name = 'sequences that share each step'
y_name = 'bits of a weight'
bar_name = 'speedup'
array level[1] = [1.0]
