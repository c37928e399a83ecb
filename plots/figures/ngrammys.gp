set xlabel 'tokens w of a row'
set ylabel 'rows k'
array level[3] = [1.0, 1.5, 2.0]
levels = '1.0, 1.5, 2.0'
