* Lots of a product: a charge for each plant that opens, a cost by quantity, a demand.
NAME fixed-charge
ROWS
 N cost
 G demand
 L open1
 L open2
 L open3
COLUMNS
    MARKER 'MARKER' 'INTORG'
    b1 cost 10 open1 -4.5
    b2 cost 7.5 open2 -3
    b3 cost 12 open3 -8
    MARKER 'MARKER' 'INTEND'
    q1 cost 1.25 demand 1
    q1 open1 1
    q2 cost 1.5 demand 1
    q2 open2 1
    q3 cost 2 demand 1
    q3 open3 1
RHS
    RHS demand 7
BOUNDS
 BV BND b1
 BV BND b2
 BV BND b3
ENDATA
