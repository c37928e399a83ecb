x_name = 'w: drafted tokens, or more, that a step accepted'
y_name = 'share of steps'
y_from = 0
y_to = 1.03
x_is_whole = 1
