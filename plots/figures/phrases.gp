set xlabel 'phrases tried behind a draft, K'
