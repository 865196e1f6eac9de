* A variable that is below 0 and has no lower bound; an integer without an upper bound.
NAME below-zero
ROWS
 N cost
 G low
 G cover
COLUMNS
    x cost 1 low 1
    x cover 1
    MARKER 'MARKER' 'INTORG'
    n cost 2.5 cover 1.5
    MARKER 'MARKER' 'INTEND'
RHS
    RHS low -3.75 cover 2
BOUNDS
 MI BND x
 UP BND x -1
 LO BND n 0
ENDATA
