set xlabel 'temperature'
