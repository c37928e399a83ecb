y_shared = 0
grouped = 2
