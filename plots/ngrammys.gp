set xlabel 'tokens w of a row'
set ylabel 'rows k'
levels = '1.0,1.5,2.0'
