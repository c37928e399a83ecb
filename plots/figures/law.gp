# S by the law over W: x law law_low law_high.
band = 1
