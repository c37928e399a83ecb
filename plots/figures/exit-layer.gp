set xlabel 'exit layer'
x_is_whole = 1
