x_name = 'position in the draft'
y_name = 'share of steps that accept it'
y_from = 0
y_to = 1.03
x_is_whole = 1
grouped = 2
