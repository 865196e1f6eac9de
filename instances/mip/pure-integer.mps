* Bounded integers and integral coefficients: CP-SAT takes it too.
NAME pure-integer
ROWS
 N cost
 G first
 G second
 E parity
COLUMNS
    MARKER 'MARKER' 'INTORG'
    x cost 5 first 2
    x second 1 parity 1
    y cost 4 first 1
    y second 3
    h parity -2
    MARKER 'MARKER' 'INTEND'
RHS
    RHS first 7 second 8
    RHS cost -3
BOUNDS
 UP BND x 6
 UP BND y 6
 UP BND h 3
ENDATA
