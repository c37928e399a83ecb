x_name = 'rows k'
y_name = 'S, tokens a step'
