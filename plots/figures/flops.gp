x_shared = 0
