"""
The papers that placeopt grew from: their settings as scenarios, and every figure that they print beside ours.

`settings` and `figures` are read from ``data/``; `scenarios` makes the workloads, `one_at_a_time` plays FGD's protocol,
`run` simulates, `results` keeps the rows, `tables` compares. Run ``python -m placeopt_papers`` in ``papers/``.
"""
