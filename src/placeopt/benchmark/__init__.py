"""
Benchmarks: methods and solvers on named sets of instances, one killable process per case.

`sets` lists the instances, `campaign` plans and runs the cases, `supervise` starts and limits the process of a case,
`child` is that process, `journal` stores the rows. `scored_cases` and `metrics` compute figures from rows, `comparison`
tables, `figures` pictures; `report` writes them. `recheck` checks everything that was stored again.
"""
