set xlabel 'rows k'
set ylabel 'S, tokens a step'
