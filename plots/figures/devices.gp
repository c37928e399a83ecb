x_name = 'window W'
x_by_powers = 1
y_shared = 0
grouped = 2
