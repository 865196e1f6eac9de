"""Measures from a Prometheus server: what DCGM's exporter says of the GPUs of pods, and of jobs of Slurm."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from placeopt.errors import BadInput
from placeopt.scheduling.telemetry import MEMORY, UTILISATION, Figures, Usage, is_figure

QUERIES: Mapping[str, str] = {
    UTILISATION: "avg by (namespace, pod, hpc_job) (DCGM_FI_DEV_GPU_UTIL)",
    MEMORY: "max by (namespace, pod, hpc_job) (DCGM_FI_DEV_FB_USED)",
}
"""Of dcgm-exporter: percent, and MiB; it labels a GPU with its pod, or with the job that Slurm's prolog names."""
TIMEOUT_S = 5.0
MAX_BYTES = 2**26


class Prometheus:
    """
    A Prometheus server, asked by its HTTP API (``/api/v1/query``) for what it has now.

    ``url``: Of the server. ``queries``: Measure -> query; the labels of its samples name a job, as ``namespace`` and
    ``pod``, or ``hpc_job``. Raises ``BadInput`` if the URL is none.
    """

    def __init__(self, url: str, queries: Mapping[str, str] = QUERIES) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"telemetry: {url!r}; expected http://HOST:PORT of a Prometheus server, or a file")
        self._url, self._queries = url.rstrip("/"), queries

    def read(self) -> Usage:
        """Return what the server has; a server that does not answer knows nothing."""
        found: dict[str, Figures] = {}
        for measure, query in self._queries.items():
            try:
                found[measure] = _by_job(self._asked(query))
            except (OSError, ValueError, http.client.HTTPException) as error:
                why = error.reason if type(error) is URLError else error
                return Usage(found, f"{self._url}: {why}")
        return Usage(found)

    def _asked(self, query: str) -> list[Any]:
        request = Request(f"{self._url}/api/v1/query?{urlencode({'query': query})}")  # noqa: S310 - http and https alone
        with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            answer = json.loads(response.read(MAX_BYTES))
        try:
            result = answer["data"]["result"]
        except (KeyError, TypeError):
            raise ValueError("not an answer of Prometheus") from None
        if not isinstance(result, list):
            raise ValueError("not a vector")
        return result


def _by_job(samples: list[Any]) -> dict[str, float]:
    """Return the values of samples whose labels name a job."""
    found: dict[str, float] = {}
    for sample in samples:
        try:
            labels, value = sample["metric"], float(sample["value"][1])
            pod = f"{labels['namespace']}/{labels['pod']}" if labels.get("pod") and labels.get("namespace") else ""
            name = pod or labels.get("hpc_job")
        except (AttributeError, KeyError, TypeError, ValueError, IndexError):
            raise ValueError(f"no sample: {sample!r}") from None
        if name and is_figure(value):
            found[name] = value
    return found
