* Infeasible: twice an integer and a continuous variable of at most a half sum to an odd number.
NAME half-integer
ROWS
 N cost
 E odd
COLUMNS
    x cost 1 odd 1
    MARKER 'MARKER' 'INTORG'
    n cost 1 odd 2
    MARKER 'MARKER' 'INTEND'
RHS
    RHS odd 7
BOUNDS
 UP BND x 0.5
 UP BND n 9
ENDATA
