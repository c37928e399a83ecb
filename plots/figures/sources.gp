x_name = 'tokens, or rows'
y_name = 'share of the steps'
y_from = 0
y_to = 1.03
x_is_whole = 1
x_shared = 0
grouped = 3
