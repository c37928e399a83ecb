x_name = 'tokens w of a row'
y_name = 'rows k'
bar_name = 'S, or speedup'
array level[3] = [1.0, 1.5, 2.0]
grouped = 2
