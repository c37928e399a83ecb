x_name = 'k: rejected guesses in a row that the target says'
y_name = 'places in a draft'
y_from = 0
x_is_whole = 1
