set xlabel 'window W'
set ylabel 'S, tokens a step'
