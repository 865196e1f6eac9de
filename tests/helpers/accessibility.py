"""axe-core in headless Chromium: what it finds on a page, and whether the page scrolls sideways."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
AXE = os.environ.get("PLACEOPT_AXE", "")
"""The file ``axe.min.js``; ``npm pack axe-core`` brings it."""
MISSING = (
    "Chromium is not installed"
    if CHROMIUM is None
    else None
    if os.path.isfile(AXE)
    else "PLACEOPT_AXE names no axe.min.js (npm pack axe-core, unpack)"
)
"""Why pages cannot be checked; None if they can."""
RUN = """
<style>.scroll { background-image: none !important }</style>
<script>%s</script><script>addEventListener("load", async () => {
  const root = document.documentElement, out = document.createElement("pre");
  const small = [...document.querySelectorAll("svg text")].filter(text => text.textContent.trim()).map(text => {
    const box = text.ownerSVGElement;
    return parseFloat(getComputedStyle(text).fontSize) * box.getBoundingClientRect().width / box.viewBox.baseVal.width;
  });
  const found = {width: root.clientWidth, scrolls: root.scrollWidth > root.clientWidth, text_px: Math.min(99, ...small),
    dark: matchMedia("(prefers-color-scheme: dark)").matches};
  document.querySelectorAll("details").forEach(part => part.open = true);
  await new Promise(drawn => setTimeout(drawn, 200));
  const result = await axe.run(document, {resultTypes: ["violations", "incomplete"]});
  for (const kind of ["violations", "incomplete"]) found[kind] = result[kind].map(rule =>
    ({rule: rule.id, impact: rule.impact, nodes: rule.nodes.length, first: rule.nodes[0].html.slice(0, 200)}));
  found.rules = result.passes.length;
  out.id = "axe-found"; out.textContent = JSON.stringify(found); parent.document.body.append(out);
});</script>
"""
"""The shadows at the sides of boxes that scroll go: below a gradient axe computes no contrast."""
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
"""What a page lets run: axe-core is not in it."""
FOUND = re.compile(r'<pre id="axe-found">(.*?)</pre>', re.DOTALL)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours (#RRGGBB), from 1 to 21, by WCAG 2.2 and sRGB's own curve (IEC 61966-2-1)."""

    def luminance(colour: str) -> float:
        parts = [part / 255 for part in bytes.fromhex(colour[1:])]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def light_dark(style: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the colours of a style sheet's ``light-dark()`` by name, those of the light scheme and of the dark one."""
    found = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", style)
    return {name: light for name, light, _ in found}, {name: dark for name, _, dark in found}


def drawn(page: str) -> str:
    """Return what scripts make of a page, under its own policy and without a network, as HTML."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        file.write_text(page, encoding="utf-8")
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=10000", "--dump-dom", file.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600).stdout


def checked(page: str, *, width: int = 1280, dark: bool = False) -> dict[str, Any]:
    """
    Return what axe finds on a page.

    ``violations``, ``incomplete``: Rules with their impact; ``scrolls``: whether the page itself scrolls sideways;
    ``text_px``: the smallest text in a figure; ``dark``: whether the page was drawn in its dark style.
    """
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory() as folder:
        script = RUN.replace("%s", Path(AXE).read_text(encoding="utf-8"))
        inner = html.escape(POLICY.sub("", page).replace("</body>", f"{script}</body>"))
        style = f"border:0;width:{width}px;height:900px"  # a window itself is never narrower than 500 px
        file = Path(folder, "page.html")
        file.write_text(f'<body style="margin:0"><iframe style="{style}" srcdoc="{inner}"></iframe>', encoding="utf-8")
        scheme = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
        command = [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
            "--window-size=1400,1000", "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=60000",
            *scheme, "--dump-dom", file.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    found = FOUND.search(done.stdout)
    assert found is not None, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(html.unescape(found[1]))
    assert answer["width"] == width
    return answer
