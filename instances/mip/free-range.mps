* A linear programme: a free variable, one without lower bound, ranges of L, G and E rows, a constant.
NAME free-range
ROWS
 N cost
 G sum
 L difference
 E balance
COLUMNS
    x cost 1 sum 1
    x difference 1
    y cost 2 sum 1
    y difference -1 balance 1
    z cost -0.5 balance 1
RHS
    RHS sum -3 difference 4
    RHS balance 2 cost -2.25
RANGES
    RNG sum 10 difference 8
    RNG balance 1.5
BOUNDS
 FR BND x
 MI BND y
 UP BND y 6
 PL BND z
ENDATA
