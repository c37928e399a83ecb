set xlabel 'eta'
