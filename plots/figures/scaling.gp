x_name = 'devices'
y_name = 'predicted speedup'
x_by_powers = 1
