"""Snapshots as files, written beside the thread that changes the cluster: 5,000 busy nodes take 0.4 s."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from placeopt.documents.documents import dumps
from placeopt.model import Instance
from placeopt.service.journal import Journal
from placeopt.service.refused import Refused
from placeopt.service.writer import Writer


class SnapshotFiles:
    """
    The bytes of snapshots, made once for each, whoever asks; those for the journal in a thread of its own.

    Parameters
    ----------
    journal
        Takes snapshots in the thread of ``writer``.
    writer
        The thread of all that touches the cluster.
    """

    def __init__(self, journal: Journal, writer: Writer) -> None:
        self._journal, self._writer = journal, writer
        self._lock = threading.Lock()
        self._made: tuple[Instance, bytes] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="placeopt-snapshot")
        self._at_work: Future[None] | None = None

    def file_of(self, snapshot: Instance) -> bytes:
        """Return a snapshot as a file; any thread may call."""
        with self._lock:
            if self._made is None or self._made[0] is not snapshot:
                self._made = snapshot, dumps(snapshot)
            return self._made[1]

    def keep(self, number: int, snapshot: Instance) -> None:
        """Begin to write the snapshot after change ``number`` to the journal, one at a time; in the writer's thread."""
        if self._at_work is None or self._at_work.done():
            self._at_work = self._thread.submit(self._keep, number, snapshot)

    def close(self) -> None:
        """Wait for what is under way, after the end of the writer."""
        self._thread.shutdown()

    def _keep(self, number: int, snapshot: Instance) -> None:
        file = self.file_of(snapshot)
        with suppress(Refused):  # the service is about to end, and the next start reads more changes
            self._writer.do(lambda: self._write(number, file))

    def _write(self, number: int, file: bytes) -> None:
        with self._journal.change():
            self._journal.add_snapshot(number, file)
