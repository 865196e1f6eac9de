"""One offline page of views: static HTML, CSS and scripts, in which the views stand as JSON."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template

from placeopt.view import View

HERE = "placeopt.report.page"


def page(views: Sequence[View]) -> str:
    """
    Return a page of views, which needs no network.

    Parameters
    ----------
    views
        In the order of the page; the first one names it.

    Returns
    -------
    str
        HTML. Its policy of content lets run what stands in placeopt's own files, and nothing else.
    """
    title = views[0].title if views else "placeopt"
    return _page(title, [view.model_dump(mode="json", exclude_defaults=True) for view in views])


def live_page(views: str) -> str:
    """
    Return the same page, which fetches its views.

    Parameters
    ----------
    views
        Path of a list of views, as JSON; it is asked every five seconds, with the token that the page's user states.

    Returns
    -------
    str
        HTML.
    """
    return _page("placeopt", {"views": views}, connects=True)


def _page(title: str, data: Sequence[object] | Mapping[str, str], *, connects: bool = False) -> str:
    script, css = _file("charts.js") + _file("page.js").removeprefix('"use strict";\n'), _file("page.css")
    allowed = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(css),
        **({"connect-src": "'self'"} if connects else {}),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return Template(_file("page.html")).substitute(
        policy="; ".join(f"{name} {value}" for name, value in allowed.items()),
        title=html.escape(title),
        css=css,
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
        script=script,
    )


@cache
def _file(name: str) -> str:
    return files(HERE).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return how a policy of content names a text that may run (CSP 3, section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
