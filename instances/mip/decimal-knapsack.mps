* A pure integer model whose objective has decimals.
NAME decimal-knapsack
OBJSENSE
    MAXIMIZE
ROWS
 N value
 L weight
COLUMNS
    MARKER 'MARKER' 'INTORG'
    a value 7.3 weight 3
    b value 4.1 weight 2
    c value 9.8 weight 5
    d value 2.2 weight 1
    e value 6.05 weight 4
    MARKER 'MARKER' 'INTEND'
RHS
    RHS weight 8
ENDATA
