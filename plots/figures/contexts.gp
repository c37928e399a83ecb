# Lines as in the figure 'slowdown'.
x_name = 'rows of a step'
y_name = 'context, tokens'
bar_name = 'slowdown'
array level[3] = [1.1, 1.5, 2.0]
