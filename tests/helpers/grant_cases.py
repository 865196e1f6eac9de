"""What is due of one GPU above the requests, worked out by hand (DynamoML 3.1): for the referee and for the engine."""

Asked = tuple[int, int | None, int]
"""Request, limit, and the share that is due."""

CASES: dict[str, dict[str, Asked]] = {
    "alone up to its limit": {"a": (300, 500, 500)},
    "alone up to the whole": {"a": (250, 1000, 1000)},
    "in proportion": {"a": (250, 1000, 625), "b": (250, 500, 375)},  # 500 left of 750 + 250 wanted
    "both at their limits": {"a": (200, 300, 300), "b": (100, 400, 400)},
    "just both at their limits": {"a": (200, 500, 500), "b": (100, 500, 500)},
    "one short of that": {"a": (200, 500, 500), "b": (101, 501, 500)},  # 699 of 700 wanted: 299, 399, one over to a
    "remainders by name": {"c": (100, 1000, 333), "a": (100, 1000, 334), "b": (100, 1000, 333)},  # 700 / 3 = 233.3
    "two remainders": {"c": (100, 1000, 333), "a": (99, 999, 333), "b": (100, 1000, 334)},  # 701 / 3: one each to a, b
    "a remainder passes by who is at the limit": {"a": (301, 301, 301), "b": (100, 1000, 350), "c": (100, 1000, 349)},
    "names are text": {"a9": (1, 1000, 333), "a10": (1, 1000, 334), "b": (1, 999, 333)},  # floors make 996 of 997
    "nothing is left": {"a": (500, 600, 500), "b": (500, 1000, 500)},
    "beside one without a limit": {"a": (300, 1000, 500), "b": (500, None, 500)},
    "a limit that is the request": {"a": (300, 300, 300), "b": (100, 1000, 700)},
}
