* A linear programme: two products, three machines; every quantity is continuous.
NAME product-mix
OBJSENSE
    MAX
ROWS
 N profit
 L cutting
 L sewing
 L packing
COLUMNS
    coats profit 3 cutting 1
    coats packing 3
    shirts profit 5 sewing 2
    shirts packing 2
RHS
    RHS cutting 4 sewing 12
    RHS packing 17
ENDATA
