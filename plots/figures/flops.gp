x_name = 'GFLOP a step, of the target''s products'
y_name = 'S, tokens a step'
x_by_powers = 2
x_shared = 0
