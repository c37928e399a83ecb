x_is_whole = 1
grouped = 2
