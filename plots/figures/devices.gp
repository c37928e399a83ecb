set xlabel 'window W'
