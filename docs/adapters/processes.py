#!/usr/bin/env python3
"""An adapter of Switchyard (docs/operations/adapters.md) as a template: jobs are plain processes of this host, and none waits.

It keeps a file for each job in ~/.switchyard-processes, or where PROCESSES_DIR says. Real schedulers do that themselves: of this file
they need what is in `verbs`, with other words in it.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

JOBS = pathlib.Path(os.environ.get("PROCESSES_DIR", pathlib.Path.home() / ".switchyard-processes"))
HOST = socket.gethostname().split(".")[0]
CPUS = os.cpu_count()
MEMORY_MB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
KEPT_S = 600  # Ended jobs are listed for so long.
KILL_S = 10  # From SIGTERM to SIGKILL.


def describe(_):
    return {
        "contract": 1,
        "label": "Processes",
        # Shell text at the beginning of each script: which job it is, where it runs, and in an array which element.
        "prologue": f"local_id=$LOCAL_ID\nelement=$LOCAL_ELEMENT\nnodes={HOST}",
        # Commands are not started once for each task here.
        "tasks": None,
    }


def submit(job):
    if job["tasks"] * job["cpusPerTask"] > CPUS:
        return {"refused": f"{job['tasks'] * job['cpusPerTask']} CPUs: this host has {CPUS}"}
    elements = [None] if job["elements"] is None else range(job["elements"])
    return {"ids": [start(job, element) for element in elements]}


def start(job, element):
    entry = {"name": job["name"], "element": element, "directory": job["directory"], "pid": None, "born": time.time()}
    path = JOBS / f"{time.time_ns()}.{os.getpid()}"
    write(path, entry)  # Before it starts: else it could run without being found.
    environment = {"PATH": os.defpath, "LOCAL_ID": path.name, "LOCAL_ELEMENT": "" if element is None else str(element)}
    with open(os.path.join(job["directory"], "scheduler"), "ab") as out:
        child = subprocess.Popen([job["script"]], cwd=job["directory"], env=environment, stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=out, start_new_session=True)
    write(path, {**entry, "pid": child.pid, "start": stat(child.pid)[19]})
    return path.name


def find(asked):
    return {"jobs": [job for job in known() if job["name"] in asked["names"]]}


def list_(asked):
    return {"jobs": [job for job in known() if job["name"].startswith(asked["prefix"])]}


def cancel(asked):
    wanted = {(job["name"], job["element"]) for job in asked["jobs"]}
    for job in known():
        if (job["name"], job["element"]) in wanted and job["phase"] != "ENDED":
            path = JOBS / job["id"]
            entry = json.loads(path.read_text())
            late = time.time() - entry.get("asked", time.time()) > KILL_S
            write(path, {"asked": time.time(), **entry})
            for pid in session(entry["pid"]):
                try:
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                except ProcessLookupError:
                    pass
    return {}


def capacity(_):
    node = {"name": HOST, "cpus": CPUS, "memoryMb": MEMORY_MB, "busyCpus": 0, "busyMemoryMb": 0, "problem": None}
    return {"nodes": [node], "waiting": [], "elementsMax": 1000}


verbs = {"describe": describe, "submit": submit, "find": find, "list": list_, "cancel": cancel, "capacity": capacity}


def known():
    jobs = []
    for path in JOBS.iterdir():
        entry = json.loads(path.read_text()) if path.suffix != ".new" else None
        if entry is None:
            continue
        fields = stat(entry["pid"])
        runs = fields is not None and fields[0] != "Z" and fields[19] == entry["start"]
        if not runs and time.time() - entry["born"] > KEPT_S:
            path.unlink(missing_ok=True)
        jobs.append({
            "name": entry["name"], "element": entry["element"], "id": path.name, "directory": entry["directory"],
            "phase": "RUNNING" if runs else "ENDED", "words": "running" if runs else "over", "hopeless": False,
            "ended": None if runs or "asked" not in entry else "CANCELLED",
        })
    return jobs


def write(path, entry):
    path.with_suffix(f"{path.suffix}.new").write_text(json.dumps(entry))
    path.with_suffix(f"{path.suffix}.new").rename(path)


def stat(pid):
    """The fields of /proc/PID/stat behind the name; None: there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None


def session(leader):
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if (stat(pid) or [None] * 4)[3] == str(leader)]


if __name__ == "__main__":
    JOBS.mkdir(mode=0o700, parents=True, exist_ok=True)
    if len(sys.argv) != 2 or sys.argv[1] not in verbs:
        sys.exit(f"a verb is accepted: {', '.join(verbs)}")
    json.dump(verbs[sys.argv[1]](json.load(sys.stdin)), sys.stdout)
