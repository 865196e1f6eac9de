"""
A real Slurm on one machine: munged, slurmctld and 16 slurmd on loopback, in a temporary folder.

GPUs are files that stand for devices. Needs Debian's slurm-wlm (22.05 or later) and munge, and root, as which jobs run.
Run as a program it stays until Ctrl-C and prints the variable by which Slurm's commands find it:

    python tests/helpers/slurm_lab.py
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from helpers.daemons import end_daemon

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "sinfo")
START_LOOKS, LOOK_S = 200, 0.2
"""After so many looks all nodes of a new lab must be idle."""

GPU_NODES = tuple(f"g{i}" for i in range(1, 9))
NODES = (*GPU_NODES, "l1", "l2", "l3", "l4", "m1", "t1", "c1", "c2")

SHAPES: dict[str, tuple[str, ...]] = {
    "gang of 2 whole nodes": ("-N2", "--gres=gpu:a100:8", "--ntasks-per-node=8", "-c4", "--mem=200G"),
    "gang of 3 half nodes": ("-N3", "--gres=gpu:a100:4", "-c8", "--mem=100G"),
    "range of 2 to 3 nodes": ("-N2-3", "--gres=gpu:a100:4", "-c4", "--mem=50G"),
    "one GPU a task": ("-n6", "--gpus-per-task=a100:1", "-c4", "--mem-per-cpu=1G"),
    "GPUs of a job": ("-N1", "--gpus=a100:6", "--cpus-per-gpu=4", "--mem-per-gpu=10G"),
    "one GPU": ("-N1", "--gres=gpu:a100:1", "-c4", "--mem=30G"),
    "half a node": ("-N1", "--gres=gpu:4", "-C", "a100", "-c8", "--mem=100G"),
    "exclusive node": ("-N1", "--exclusive", "--gres=gpu:2", "-C", "a100"),
    "array, two at once": ("--array=0-3%2", "-N1", "--gres=gpu:l40s:2", "-c4", "--mem=20G"),
    "two L40S nodes": ("-N2", "--gres=gpu:l40s:4", "-c4", "--mem=50G"),
    "MIG instances": ("-N1", "--gres=gpu:a100_1g.5gb:2", "-c2", "--mem=8G"),
    "shards of a GPU": ("-N1", "--gres=shard:2", "-c2", "--mem=4G"),
    "CPUs": ("-p", "cpu", "-N1", "-n20", "--mem-per-cpu=1G"),
}
"""Of jobs: options of sbatch."""

CONFIG = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort={control}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
SwitchType=switch/none
ReturnToService=2
SlurmctldTimeout=300
SlurmdTimeout=300
MinJobAge=3600
KillWait=1
SchedulerType=sched/backfill
SchedulerParameters={scheduler}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
TopologyPlugin=topology/tree
PriorityType=priority/multifactor
PriorityWeightAge=1000
GresTypes=gpu,shard
SlurmdParameters=config_overrides
DefMemPerCPU=2000
{more}{nodes}PartitionName=gpu Nodes={gpu_nodes} Default=YES MaxTime=7-0 DefaultTime=1:00:00 State=UP
PartitionName=cpu Nodes=c[1-2] MaxTime=7-0 DefaultTime=1:00:00 State=UP
"""
GRES = """\
NodeName=g[1-8] Name=gpu Type=a100 File={folder}/gpu[0-3] Cores=0-31
NodeName=g[1-8] Name=gpu Type=a100 File={folder}/gpu[4-7] Cores=32-63
NodeName=l[1-4] Name=gpu Type=l40s File={folder}/gpu[0-3]
NodeName=m1 Name=gpu Type=a100_3g.20gb File={folder}/gpu[0-1]
NodeName=m1 Name=gpu Type=a100_1g.5gb File={folder}/gpu[2-5]
NodeName=t1 Name=gpu Type=t4 File={folder}/gpu[0-1]
NodeName=t1 Name=shard Count=8
"""
TOPOLOGY = """\
SwitchName=leaf1 Nodes=g[1-4]
SwitchName=leaf2 Nodes=g[5-8]
SwitchName=leaf3 Nodes=l[1-4],m1,t1,c[1-2]
SwitchName=spine Switches=leaf[1-3]
"""
HARDWARE = {
    "g": "Sockets=2 CoresPerSocket=32 ThreadsPerCore=1 RealMemory=1000000 Gres=gpu:a100:8 Feature=a100,nvlink",
    "l": "Sockets=1 CoresPerSocket=32 ThreadsPerCore=2 RealMemory=256000 Gres=gpu:l40s:4 Feature=l40s",
    "m": "Sockets=1 CoresPerSocket=16 RealMemory=128000 Gres=gpu:a100_3g.20gb:2,gpu:a100_1g.5gb:4",
    "t": "Sockets=1 CoresPerSocket=16 RealMemory=128000 Gres=gpu:t4:2,shard:8",
    "c": "Sockets=1 CoresPerSocket=32 RealMemory=128000",
}
"""By the first letter of a node."""


def why_no_lab() -> str | None:
    """Return why no Slurm can be started here, None if it can."""
    missing = [program for program in PROGRAMS if _found(program) is None]
    if missing:
        return f"Slurm is not installed here ({', '.join(missing)} missing): apt-get install slurm-wlm munge"
    return None if os.geteuid() == 0 else "slurmd starts jobs as root only"


def _found(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class SlurmLab:
    """
    A running Slurm, a context manager; ``env`` is the environment in which its commands find it.

    Eight nodes g1-g8 of 8 A100 on 2 switches, l1-l4 of 4 L40S, m1 with MIG instances, t1 of 2 T4 in 8 shards, c1 and c2
    without GPUs.
    ``scripts``: Option of Slurm that names a program (``Prolog``) -> its lines of shell.
    """

    def __init__(self, scheduler: str = "bf_interval=5", **scripts: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-lab-"))
        self.env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "SLURM_TIME_FORMAT": "%s"}
        self.env["PATH"] = f"{self.env.get('PATH', '')}:/usr/sbin:/sbin"
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._scheduler, self._scripts = scheduler, scripts

    def __enter__(self) -> Self:
        """Start all daemons and wait until every node is idle."""
        try:
            self._configure()
            self._start_munge()
            for name in ("slurmctld", *NODES):
                self.start_daemon(name)
            idle = {(name, "idle") for name in NODES}
            self._wait(lambda: self._states() == idle, "slurmctld.log")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel all jobs, end all daemons, and remove the folder."""
        with suppress(OSError, subprocess.SubprocessError):
            self.run("scancel", "--user=root", "--full", check=False)
            time.sleep(0.3)
        for name in sorted(self.daemons, key=lambda name: name == "munged"):
            self.stop_daemon(name)
        self._end_steps()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _states(self) -> set[tuple[str, ...]]:
        lines = self.run("sinfo", "--noheader", "--Node", "--format=%N %t", check=False).splitlines()
        return {tuple(line.split()) for line in lines}

    def _wait(self, holds: Callable[[], bool], log: str) -> None:
        for _ in range(START_LOOKS):
            if holds():
                return
            time.sleep(LOOK_S)
        end = (self.folder / log).read_text(errors="replace")[-2000:]
        raise TimeoutError(f"it has not started after {START_LOOKS} looks: {end}")

    def start_daemon(self, name: str) -> None:
        """Start ``slurmctld``, or the slurmd of a node."""
        command = ["slurmctld", "-D"] if name == "slurmctld" else ["slurmd", "-D", "-N", name]
        self.daemons[name] = self._popen(command)

    def stop_daemon(self, name: str, number: int = signal.SIGTERM) -> None:
        """End a daemon."""
        end_daemon(self.daemons.pop(name), number)

    def kill_node(self, node: str) -> None:
        """Take a node away: its daemon and its jobs end, and the controller is told that it is down."""
        self.stop_daemon(node, signal.SIGKILL)  # first: a daemon that answers brings its node back
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")

    def pause(self, name: str, seconds: float) -> None:
        """Let a daemon stand still: connections to it stay open, and nothing answers."""
        self.daemons[name].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.daemons[name].send_signal(signal.SIGCONT)

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command of Slurm and return its output; raises with its message if it fails."""
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60, cwd=self.folder)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def submit(self, *options: str, seconds: float = 3600, held: bool = True) -> str:
        """Submit a job that sleeps, by default held for placeopt, and return its id."""
        own = ("--hold", "--comment=placeopt") if held else ()
        command = ("sbatch", "--parsable", "--output=/dev/null", *own, *options, f"--wrap=exec sleep {seconds:g}")
        return self.run(*command).strip().partition(";")[0]

    def job(self, job: str) -> dict[str, str]:
        """Return the fields of a job as scontrol shows them."""
        text = self.run("scontrol", "--oneliner", "show", "job", job)
        return {key: value for key, _, value in (word.partition("=") for word in text.split())}

    def _end_steps(self) -> None:
        """Kill what a slurmd has left behind: processes that name this lab's folder in their environment."""
        mark = f"SLURM_CONF={self.folder}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if mark in (entry / "environ").read_bytes() and b"slurm" in (entry / "cmdline").read_bytes():
                        os.kill(int(entry.name), signal.SIGKILL)
                except (OSError, ProcessLookupError):
                    continue

    def _configure(self) -> None:
        for name in ("state", "munge", *(f"spool/{node}" for node in NODES)):
            (self.folder / name).mkdir(parents=True)
        for folder in (self.folder, self.folder / "munge"):
            folder.chmod(0o755)
        for i in range(8):
            (self.folder / f"gpu{i}").touch()
        host = socket.gethostname().partition(".")[0]
        control, *ports = free_ports(1 + len(NODES))
        nodes = "".join(
            f"NodeName={node} NodeAddr=127.0.0.1 NodeHostname={host} Port={port} {HARDWARE[node[0]]} State=UNKNOWN\n"
            for node, port in zip(NODES, ports, strict=True)
        )
        for option, lines in self._scripts.items():
            script = self.folder / option
            script.write_text(f"#!/bin/sh\n{lines}\n")
            script.chmod(0o755)
        text = CONFIG.format(
            host=host,
            folder=self.folder,
            control=control,
            scheduler=self._scheduler,
            nodes=nodes,
            more="".join(f"{option}={self.folder / option}\n" for option in self._scripts),
            gpu_nodes=",".join(node for node in NODES if not node.startswith("c")),
        )
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "gres.conf").write_text(GRES.format(folder=self.folder))
        (self.folder / "topology.conf").write_text(TOPOLOGY)

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        key = folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        names = {"socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        files = [f"--{option}={folder / name}" for option, name in names.items()]
        self.daemons["munged"] = self._popen(["munged", "--foreground", "--force", f"--key-file={key}", *files])
        self._wait((folder / "socket").exists, "munge/log")

    def _popen(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        program, nothing = _found(command[0]) or command[0], subprocess.DEVNULL
        return subprocess.Popen(
            [program, *command[1:]], env=self.env, cwd=self.folder, start_new_session=True,
            stdin=nothing, stdout=nothing, stderr=nothing,
        )  # fmt: skip


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address on which nothing listens, below those of outgoing connections."""
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)):
                found.add(port)
    return list(found)


if __name__ == "__main__":
    with SlurmLab() as running:
        print(f"export SLURM_CONF={running.env['SLURM_CONF']}", flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        with suppress(KeyboardInterrupt):
            signal.pause()
