set xlabel 'eta: a draft ends below this confidence'
