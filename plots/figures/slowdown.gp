# Lines: where a step costs a tenth, a half, and as much again as one of a single token.
x_name = 'w: each row has w + 1 tokens'
y_name = 'k, rows'
bar_name = 'slowdown'
array level[3] = [1.1, 1.5, 2.0]
