x_name = 'eta: a draft ends below this confidence'
y_shared = 0
grouped = 2
