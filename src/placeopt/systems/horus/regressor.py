"""Regressors from features to one figure, such as GPU utilisation: linear, random forest, gradient boosting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from placeopt import BadInput, Unsupported
from placeopt.model import Record
from placeopt.predict import Fitted, Provenance, predicted_out_of_fold, relative_errors
from placeopt.systems.horus.errors import rmsle

Kind = Literal["linear", "forest", "boosting"]
REGRESSORS: tuple[Kind, ...] = get_args(Kind)
"""``linear`` needs no extra; the others are fitted with scikit-learn and used without it."""

TREES, DEPTH, RATE = 100, 6, 0.1
"""Trees of a forest and of boosting, their depth, and boosting's learning rate: the library's usual sizes."""
RIDGE = 1e-6
"""Keeps the linear fit defined if features are collinear."""


FITTED = ("centre", "scale", "base", "weights", "trees", "step", "least", "most")
"""Fields of a `Regressor` that its predictions depend on."""


class Tree(Record):
    """A binary tree as arrays, root first: a row goes left where ``x[feature] <= threshold``; feature -1 is a leaf."""

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Shape (n,) of rows ``x``, (n, features)."""
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        left, right, at = np.array(self.left), np.array(self.right), np.zeros(len(x), dtype=np.int64)
        while (inner := feature[at] >= 0).any():
            rows = np.flatnonzero(inner)
            here = at[rows]
            goes_left = x[rows, feature[here]] <= threshold[here]
            at[rows] = np.where(goes_left, left[here], right[here])
        result: np.ndarray = np.array(self.value)[at]
        return result


class Regressor(Fitted):
    """
    A fitted regressor; it predicts ``base + weights . (log(1 + x) - centre) / scale + step * sum of trees``.

    Features are counts over many orders of magnitude, so their logarithms go in (Horus 4.1.1 says "normalised" and no
    more). ``errors`` are on the rows it was fitted to; ``rmsle`` is by cross-validation.
    """

    kind: Kind
    target: str
    features: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    base: float
    weights: tuple[float, ...] = ()
    trees: tuple[Tree, ...] = ()
    step: float = 1.0
    rmsle: float
    least: float
    most: float
    """Range of the target in the data; predictions are clipped to it."""

    @property
    def held_out(self) -> str:
        """The error by cross-validation, as text."""
        return f"root mean square log error of rows left out {self.rmsle:.3f}"

    def predict(self, rows: Sequence[Mapping[str, float]]) -> np.ndarray:
        """Shape (n,): the target for ``n`` rows of features; raises ``BadInput`` where one is missing or negative."""
        return _predict(_matrix(rows, self.features), {name: getattr(self, name) for name in FITTED})


def _predict(x: np.ndarray, fields: Mapping[str, Any]) -> np.ndarray:
    """Return the predictions by the fields of ``FITTED`` for rows (n, features), shape (n,)."""
    z = (np.log1p(x) - np.array(fields["centre"])) / np.array(fields["scale"])
    out = np.full(len(x), fields["base"])
    if fields["weights"]:
        out += z @ np.array(fields["weights"])
    for tree in fields["trees"]:
        out += fields["step"] * tree.predict(z)
    return out.clip(fields["least"], fields["most"])


def fit_regressor(
    kind: Kind,
    rows: Sequence[Mapping[str, float]],
    target: str,
    *,
    source: str,
    licence: str = "",
    folds: int = 5,
    seed: int = 0,
) -> Regressor:
    """
    Fit a regressor to rows of a table; every column but ``target`` is a feature.

    Parameters
    ----------
    kind
        One of ``REGRESSORS``.
    rows
        Values of at least 0, the same columns in each.
    folds, seed
        Folds and seed of the cross-validation; the seed is also the forest's.

    Raises
    ------
    BadInput
        If there are fewer rows than folds, a column is missing, or a figure is negative.
    Unsupported
        If scikit-learn is not installed and ``kind`` needs it.
    """
    if kind not in REGRESSORS:
        raise BadInput(f"kind: {kind!r}; expected one of {', '.join(REGRESSORS)}")
    if len(rows) < folds:
        raise BadInput(f"rows: {len(rows)}; expected at least {folds}, one for each fold")
    features = tuple(name for name in rows[0] if name != target)
    x, y = _matrix(rows, features), _matrix(rows, (target,))[:, 0]
    off = cross_validated(kind, x, y, folds=folds, seed=seed)
    fields = _fit(kind, x, y, seed)
    model = Regressor(
        name=f"{target} by {kind}",
        provenance=Provenance(source=source, licence=licence, rows=len(rows)),
        errors=relative_errors([1.0], [1.0]),
        kind=kind,
        target=target,
        features=features,
        rmsle=off,
        **fields,
    )
    seen = y > 0
    return model.model_copy(update={"errors": relative_errors(model.predict(rows)[seen], y[seen])})


def cross_validated(kind: Kind, x: np.ndarray, y: np.ndarray, *, folds: int = 5, seed: int = 0) -> float:
    """Return the root mean square log error over rows (n, features) left out of the fit one fold after the other."""

    def predict(fitted: np.ndarray, left: np.ndarray) -> np.ndarray:
        return _predict(x[left], _fit(kind, x[fitted], y[fitted], seed))

    return rmsle(predicted_out_of_fold(len(y), folds, predict, seed=seed), y)


def _fit(kind: Kind, x: np.ndarray, y: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the fields of ``FITTED``."""
    z = np.log1p(x)
    centre, scale = z.mean(axis=0), z.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (z - centre) / scale
    fields: dict[str, Any] = {
        "centre": tuple(centre.tolist()),
        "scale": tuple(scale.tolist()),
        "least": float(y.min()),
        "most": float(y.max()),
        "weights": (),
        "trees": (),
        "step": 1.0,
    }
    if kind == "linear":
        a = np.vstack([z, np.sqrt(RIDGE * len(z)) * np.eye(z.shape[1])])
        b = np.concatenate([y - y.mean(), np.zeros(z.shape[1])])
        weights = np.linalg.lstsq(a, b, rcond=None)[0]
        return {**fields, "base": float(y.mean()), "weights": tuple(weights.tolist())}
    try:
        from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    except ImportError as error:
        raise Unsupported(f"kind {kind!r}: needs scikit-learn; install it, or take 'linear'") from error
    if kind == "forest":
        forest = RandomForestRegressor(n_estimators=TREES, max_depth=DEPTH, random_state=seed).fit(z, y)
        trees = tuple(_tree(estimator.tree_) for estimator in forest.estimators_)
        return {**fields, "base": 0.0, "trees": trees, "step": 1 / TREES}
    boosting = GradientBoostingRegressor(
        n_estimators=TREES, max_depth=DEPTH // 2, learning_rate=RATE, random_state=seed
    ).fit(z, y)
    trees = tuple(_tree(estimator.tree_) for estimator in boosting.estimators_[:, 0])
    return {**fields, "base": float(y.mean()), "trees": trees, "step": RATE}


def _tree(tree: Any) -> Tree:
    """Return a tree of scikit-learn; it compares in single precision, so its thresholds differ slightly from ours."""
    return Tree(
        feature=tuple(max(int(f), -1) for f in tree.feature),
        threshold=tuple(float(t) for t in tree.threshold),
        left=tuple(int(n) for n in tree.children_left),
        right=tuple(int(n) for n in tree.children_right),
        value=tuple(float(v) for v in tree.value[:, 0, 0]),
    )


def _matrix(rows: Sequence[Mapping[str, float]], columns: Sequence[str]) -> np.ndarray:
    """Shape (n, columns)."""
    for number, row in enumerate(rows):
        for name in columns:
            if name not in row:
                raise BadInput(f"rows[{number}]: no {name!r}; expected the columns {', '.join(columns)}")
            if not 0 <= row[name] < float("inf"):
                raise BadInput(f"rows[{number}].{name}: {row[name]}; expected a number of at least 0")
    return np.array([[row[name] for name in columns] for row in rows], dtype=float).reshape(len(rows), len(columns))
