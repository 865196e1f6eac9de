"""
Benchmarks: methods and solvers on named sets of instances, one killable process a case.

`sets` says which instances there are, `cases` what is to be run, `child` runs one case and `supervise` watches it,
`journal` keeps the rows, `campaign` has all of them run. `metrics` and `bootstrap` turn rows into figures, `comparison`
into tables, `report` writes them beside `plots`. `recheck` judges everything that was stored once more.
"""
