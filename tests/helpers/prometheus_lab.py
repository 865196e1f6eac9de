"""A real Prometheus on loopback, that scrapes an exporter in this process; Debian's package ``prometheus`` has it."""

import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MISSING = None if shutil.which("prometheus") else "prometheus is not installed"
STARTS_S = 30.0


class Exporter:
    """What dcgm-exporter would say: ``gpus`` is GPU -> labels of its job, utilisation, memory used in MiB."""

    def __init__(self) -> None:
        self.gpus: dict[str, tuple[Mapping[str, str], float, float]] = {}
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    def text(self) -> str:
        lines = []
        for metric, index in (("DCGM_FI_DEV_GPU_UTIL", 1), ("DCGM_FI_DEV_FB_USED", 2)):
            lines.append(f"# TYPE {metric} gauge")
            for gpu, entry in self.gpus.items():
                labels = ",".join(f'{name}="{value}"' for name, value in {"gpu": gpu, **entry[0]}.items())
                lines.append(f"{metric}{{{labels}}} {entry[index]}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Server:
    """A running Prometheus."""

    url: str
    child: subprocess.Popen[bytes]

    def pause(self, seconds: float) -> None:
        """Let it stand still: it takes connections, and does not answer."""
        self.child.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.child.send_signal(signal.SIGCONT)


@contextmanager
def prometheus(folder: Path, exporter: Exporter) -> Iterator[Server]:
    """Start it; yield it once it answers."""
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        "scrape_configs:\n"
        "  - job_name: dcgm\n"
        "    honor_labels: true\n"
        f"    static_configs: [{{targets: ['127.0.0.1:{exporter.port}']}}]\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            wait_until(lambda: _answers(url), "Prometheus does not answer")
            yield Server(url, child)
        finally:
            child.send_signal(signal.SIGCONT)
            child.terminate()
            child.wait(STARTS_S)


def wait_until(happened: Callable[[], object], why: str) -> None:
    """Ask ten times a second until it is so."""
    ends = time.monotonic() + STARTS_S
    while not happened():
        assert time.monotonic() < ends, why
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=1) as answer:  # noqa: S310 - on loopback
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
