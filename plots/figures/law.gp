# S by the law over W: x law law_low law_high.
x_name = 'window W'
y_name = 'S by the law'
x_by_powers = 1
y_from = 1
band = 1
