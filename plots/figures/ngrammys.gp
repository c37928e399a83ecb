grouped = 2
