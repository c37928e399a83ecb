x_is_whole = 1
x_shared = 0
grouped = 3
