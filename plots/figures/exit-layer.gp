x_is_whole = 1
y_shared = 0
grouped = 2
