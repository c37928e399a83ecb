x_name = 'window W'
y_name = 'S, tokens a step'
x_by_powers = 1
y_from = 1
