* General integers by LI and UI, of both signs; a fixed variable; a continuous one with a share in both rows.
NAME integer-bounds
OBJSENSE MAX
ROWS
 N value
 L room
 G floor
COLUMNS
    i value 2.5 room 2
    j value -1 room -1
    j floor 1
    k value 1.5 room 1
    f value 0.75 room 3
    x value 1 room 1.25
    x floor 0.1
RHS
    RHS room 9.5 floor -4
BOUNDS
 LI BND i -2
 UI BND i 3
 LI BND j -6
 UI BND j -1
 LI BND k 0
 UI BND k 4
 FX BND f 1
 UP BND x 2.2
ENDATA
