x_is_whole = 1
