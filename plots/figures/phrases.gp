x_name = 'phrases tried behind a draft, K'
y_shared = 0
grouped = 2
