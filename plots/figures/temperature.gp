x_name = 'temperature'
y_shared = 0
grouped = 2
