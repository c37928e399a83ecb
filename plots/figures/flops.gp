set xlabel 'GFLOP a step: the target''s products with its weights'
set ylabel 'S, tokens a step'
set logscale x 2
x_by_powers = 1
set format x '%.2g'
