#!/usr/bin/env python3
"""An adapter of Switchyard (docs/operations/adapters.md) for Grid Engine (8.1).

SGE_ROOT, SGE_CELL and the options of each qsub (QSUB_OPTIONS, such as "-q long.q") are read from the environment: set them in a wrapper script.
Jobs of several CPUs need a parallel environment on one host (allocation_rule $pe_slots); SGE_PE is its name.
"""
import getpass
import json
import os
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree

ENVIRONMENT = {"SGE_ROOT": "/var/lib/gridengine", "SGE_CELL": "default", **os.environ}
PE = os.environ.get("SGE_PE", "smp")
OPTIONS = shlex.split(os.environ.get("QSUB_OPTIONS", ""))
YEAR_S = 31_536_000

PROLOGUE = """local_id=$JOB_ID
element=
[ "$SGE_TASK_ID" = undefined ] || { local_id=$JOB_ID.$SGE_TASK_ID; element=$((SGE_TASK_ID - 1)); }
nodes=${HOSTNAME:-$(hostname)}"""


def describe(_):
    return {"contract": 1, "label": "Grid Engine", "prologue": PROLOGUE, "tasks": None}


def submit(job):
    slots = job["tasks"] * job["cpusPerTask"]
    words = ["qsub", "-terse", "-N", job["name"], "-ac", f"switchyard={job['comment']}", "-S", "/bin/sh", "-r", "n", "-w", "e",
             "-wd", job["directory"], "-j", "y", "-o", f"{job['directory']}/scheduler"]
    if job["elements"] is not None:
        words += ["-t", f"1-{job['elements']}"]
    if job["timeLimitS"] is not None:
        words += ["-l", f"h_rt={int(job['timeLimitS'] + 0.999)}"]
    if job.get("partition"):
        words += ["-q", job["partition"]]
    if job.get("account"):
        words += ["-P", job["account"]]
    if slots > 1:
        words += ["-pe", PE, str(slots)]
    done = call([*words, *OPTIONS, job["script"]], check=False)
    if done.returncode != 0:
        if re.search("no suitable queues|job rejected|Unknown option|does not exist", done.stderr):
            return {"refused": done.stderr.strip()}
        sys.exit(done.stderr)
    number = done.stdout.strip().splitlines()[-1].split(".")[0]
    return {"ids": [number if job["elements"] is None else f"{number}.{i + 1}" for i in range(job["elements"] or 1)]}


def find(asked):
    names = set(asked["names"])
    jobs = [job for job in queued() if job["name"] in names]
    known = {(job["name"], job["element"]) for job in jobs}
    # Its books are a text file, and late.
    begin = time.strftime("%Y%m%d%H%M", time.localtime(asked["sinceMs"] / 1000 - 86_400))
    for text in call(["qacct", "-b", begin, "-o", getpass.getuser(), "-j"], check=False).stdout.split("=" * 62):
        fields = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)
        name, task = fields.get("jobname"), fields.get("taskid", "").strip()
        element = int(task) - 1 if task.isdigit() else None
        if name in names and (name, element) not in known:
            number = fields["jobnumber"].strip()
            jobs.append(job_of(name, element, number, "ENDED", f"over, failed {fields['failed'].strip()}"))
    return {"jobs": jobs}


def list_(asked):
    return {"jobs": [job for job in queued() if job["name"].startswith(asked["prefix"])]}


def cancel(asked):
    wanted = {(job["name"], job["element"]) for job in asked["jobs"]}
    ids = [job["id"] for job in queued() if (job["name"], job["element"]) in wanted]
    for first in range(0, len(ids), 200):
        # What has ended in between is no error.
        call(["qdel", *ids[first:first + 200]], check=False)
    return {}


def capacity(_):
    nodes = {}
    root = xml_of(["qhost", "-q", "-xml"])
    for host in root.iter("host"):
        value = {one.get("name"): one.text for one in host.findall("hostvalue")}
        if host.get("name") == "global":
            continue
        queues = [{one.get("name"): one.text for one in queue.findall("queuevalue")} for queue in host.findall("queue")]
        slots, used = sum(int(queue["slots"]) for queue in queues), sum(int(queue["slots_used"]) for queue in queues)
        states = "".join(queue.get("state_string") or "" for queue in queues)
        problem = "no queue" if not queues else f"state {states}" if re.search("[auEdDsSC]", states) else None
        memory, taken = megabytes(value["mem_total"]), megabytes(value["mem_used"])
        nodes[host.get("name")] = {
            "name": host.get("name"), "cpus": slots or 1, "memoryMb": memory or 1, "busyCpus": used,
            "busyMemoryMb": min(taken, memory or 1), "problem": problem if memory else "no answer",
        }
    waiting = [{"name": job.findtext("JB_name"), "cpus": int(job.findtext("slots")), "limitS": limit_of(job)}
               for job in qstat("-u", "*", "-s", "p", "-g", "d", "-r")]
    return {"nodes": list(nodes.values()), "waiting": waiting, "elementsMax": 10_000}


verbs = {"describe": describe, "submit": submit, "find": find, "list": list_, "cancel": cancel, "capacity": capacity}


def queued():
    jobs = []
    for job in qstat("-u", getpass.getuser(), "-g", "d"):
        state, task = job.findtext("state"), job.findtext("tasks")
        phase = "WAITING" if re.search("[qwhE]", state) and "r" not in state else "RUNNING"
        jobs.append(job_of(job.findtext("JB_name"), int(task) - 1 if task else None, job.findtext("JB_job_number"), phase, state))
    return jobs


def job_of(name, element, number, phase, words):
    return {"name": name, "element": element, "id": number if element is None else f"{number}.{element + 1}", "phase": phase,
            "words": words, "hopeless": words.startswith("E"), "ended": None, "directory": None}


def limit_of(job):
    for request in job.iter("hard_request"):
        if request.get("name") == "h_rt":
            return min(int(request.text), YEAR_S)
    return YEAR_S


def megabytes(text):
    found = re.fullmatch(r"([\d.]+)([KMGT]?)", text)
    return 0 if found is None else int(float(found[1]) * {"": 2**-20, "K": 2**-10, "M": 1, "G": 2**10, "T": 2**20}[found[2]])


def qstat(*words):
    return list(xml_of(["qstat", "-xml", *words]).iter("job_list"))


def xml_of(words):
    return xml.etree.ElementTree.fromstring(call(words).stdout)


def call(words, check=True):
    """Fails where the scheduler cannot be asked: never an empty answer then."""
    done = subprocess.run(words, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if check and done.returncode != 0:
        sys.exit(f"{words[0]}: {done.stderr.strip() or done.returncode}")
    return done


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in verbs:
        sys.exit(f"a verb is accepted: {', '.join(verbs)}")
    json.dump(verbs[sys.argv[1]](json.load(sys.stdin)), sys.stdout)
