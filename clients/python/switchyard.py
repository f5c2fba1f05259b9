"""A client of Switchyard in one file, for Python 3.8 and later. It needs nothing but the standard library.

    import switchyard

    client = switchyard.Client()  # SWITCHYARD_URL and SWITCHYARD_KEY
    job = client.submit(["sh", "-c", "echo hello"], cpus_per_task=2)
    print(job.wait().stdout())

    jobs = client.map(["./align", "{}"], ["a.fa", "b.fa"], memory_mb_per_task=2000)
    for job in client.as_completed(jobs):
        print(job.input, job.state, job.exit_code)

Fields of jobs are those of `JobInput` in the service's schema (`switchyard schema`), as `cpus_per_task` for `cpusPerTask`.
"""

import json
import os
import random
import time
import urllib.error
import urllib.request
import uuid

__all__ = ["Client", "Job", "Error"]

ENDED = ("COMPLETED", "FAILED", "CANCELLED")
#: Jobs in one submission, and ids in one query.
SUBMISSION_MAX = 10000
IDS_MAX = 1000
#: Between two looks at jobs that are waited for, seconds: at first, and at most.
FIRST_PAUSE, LAST_PAUSE = 0.1, 2.0
#: A request that may be answered later is sent again so often.
ATTEMPTS = 8
#: Codes of errors that pass.
PASSING = ("UNAVAILABLE", "RATE_LIMITED", "NETWORK")

_FIELDS = "id state cause message exitCode name"


class Error(Exception):
    """What the service, or its silence, says. `code`: as in `ErrorCode` of the schema, or NETWORK."""

    def __init__(self, message, code):
        super().__init__("%s (%s)" % (message, code))
        self.code = code


class Job:
    """A job as it was when it was last asked for: `state`, `cause`, `exit_code`, `message`, and the `input` that `map` made it of."""

    def __init__(self, client, id, input=None):
        self.client = client
        self.id = id
        self.input = input
        self.state = self.cause = self.exit_code = self.message = self.name = None

    def __repr__(self):
        return "<Job %s %s>" % (self.id, self.state)

    @property
    def ended(self):
        return self.state in ENDED

    @property
    def ok(self):
        """Whether it has ended well."""
        return self.state == "COMPLETED"

    def refresh(self):
        """Asks for its present state. Gives the job."""
        self.client._refresh([self])
        if self.state is None:
            raise Error("there is no job %s, or this key may not see it" % self.id, "NOT_FOUND")
        return self

    def wait(self, timeout=None):
        """Waits until it has ended. Gives the job. Raises TimeoutError after `timeout` seconds."""
        self.client.wait([self], timeout)
        return self

    def output(self, stream="stdout", task=0):
        """The bytes that its latest run has written, as far as they are kept. `stream`: stdout or stderr."""
        path = "/jobs/%s/output?stream=%s&task=%d" % (self.id, stream, task)
        return self.client._send(self.client._address(path))

    def stdout(self):
        """Its standard output as text."""
        return self.output("stdout").decode("utf-8", "replace")

    def stderr(self):
        """Its standard error as text."""
        return self.output("stderr").decode("utf-8", "replace")

    def cancel(self):
        """Cancels it. Gives whether that changed anything: a job that has ended stays as it is."""
        return self.id in self.client.cancel([self])

    def _take(self, fields):
        self.state, self.cause = fields["state"], fields["cause"]
        self.exit_code, self.message, self.name = fields["exitCode"], fields["message"], fields["name"]


class Client:
    """Speaks to a service.

    `url`: of its GraphQL endpoint; `key`: an API key. By default those of SWITCHYARD_URL and SWITCHYARD_KEY, else of the service that `npm
    start` runs in this directory. `timeout`: of one request, seconds.
    """

    def __init__(self, url=None, key=None, timeout=120):
        self.url = url or os.environ.get("SWITCHYARD_URL") or "http://localhost:4000/graphql"
        self.key = key or os.environ.get("SWITCHYARD_KEY") or _key_here()
        self.timeout = timeout

    def graphql(self, query, variables=None):
        """Sends a query or mutation and gives its data. Sends it again where it may be answered later: a mutation must allow that."""
        body = json.dumps({"query": query, "variables": variables or {}}).encode()
        answer = json.loads(self._send(self.url, body))
        if answer.get("errors"):
            raise _error_of(answer["errors"])
        return answer["data"]

    def submit(self, command, idempotency_key=None, **fields):
        """Submits a job. `command`: the program and its arguments."""
        return self.submit_all([dict(fields, command=command)], idempotency_key)[0]

    def submit_all(self, jobs, idempotency_key=None, allow_unfit=False):
        """Submits jobs, each as a dict of its fields: all or none. With the same key and jobs, gives the same jobs again."""
        given = [_job_input(job) for job in jobs]
        if not given:
            return []
        if len(given) > SUBMISSION_MAX:
            raise ValueError("%d jobs; accepted: up to %d in one submission" % (len(given), SUBMISSION_MAX))
        asked = {
            # With a key, a request whose answer was lost is repeated without harm.
            "idempotencyKey": idempotency_key or str(uuid.uuid4()),
            "jobs": given,
            "allowUnfit": allow_unfit,
        }
        answer = self.graphql(
            "mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { index code message } } }",
            {"input": asked},
        )["submitJobs"]
        if answer["errors"]:
            first = answer["errors"][0]
            # Without an index it is about all of them: the key was used before for other jobs, for example.
            which = "" if first["index"] is None else "job %d: " % first["index"]
            raise Error(which + first["message"], first["code"])
        return [Job(self, id) for id in answer["jobIds"]]

    def map(self, command, inputs, at_once=None, idempotency_key=None, **fields):
        """Submits a job for each input, in order. `{}` in the words of the command is the input as text; or `command` is a function that
        gives the words for an input. `at_once`: so many run at the same time, at most."""
        inputs = list(inputs)
        jobs = []
        for number, one in enumerate(inputs):
            words = command(one) if callable(command) else [word.replace("{}", str(one)) for word in command]
            job = dict(fields, command=words, array_index=number)
            if at_once is not None:
                job["ref"] = "input %d" % number
                if number >= at_once:
                    before = {"ref": "input %d" % (number - at_once), "condition": "ANY"}
                    job["needs"] = list(fields.get("needs", [])) + [{"of": [before]}]
            jobs.append(job)
        submitted = self.submit_all(jobs, idempotency_key)
        for job, one in zip(submitted, inputs):
            job.input = one
        return submitted

    def job(self, id):
        """The job of an id such as job_17."""
        return Job(self, id).refresh()

    def as_completed(self, jobs, timeout=None):
        """Gives each of the jobs once it has ended, as they end. Raises TimeoutError after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        pending = {job.id: job for job in jobs}
        pause = FIRST_PAUSE
        while pending:
            found = self._refresh(list(pending.values()), ENDED)
            for job in found:
                yield pending.pop(job.id)
            if not pending:
                return
            pause = FIRST_PAUSE if found else min(pause * 1.5, LAST_PAUSE)
            if until is not None and time.monotonic() + pause > until:
                raise TimeoutError("%d jobs have not ended within %s s" % (len(pending), timeout))
            time.sleep(pause)

    def wait(self, jobs, timeout=None):
        """Waits until all have ended. Gives them, in their order."""
        jobs = list(jobs)
        for _ in self.as_completed(jobs, timeout):
            pass
        return jobs

    def cancel(self, jobs):
        """Cancels jobs (or ids). Gives the ids of those that this changed: those that have ended stay as they are."""
        ids = [job.id if isinstance(job, Job) else job for job in jobs]
        changed = []
        for some in _pieces(ids, SUBMISSION_MAX):
            changed += self.graphql(
                "mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }", {"ids": some}
            )["cancelJobs"]["jobIds"]
        return changed

    def _refresh(self, jobs, states=None):
        """Asks for these jobs, those in one of the states. Gives those that were found."""
        by_id = {job.id: job for job in jobs}
        found = []
        for ids in _pieces(list(by_id), IDS_MAX):
            wanted = {"ids": ids} if states is None else {"ids": ids, "states": list(states)}
            nodes = self.graphql(
                "query ($filter: JobFilter!, $first: Int!) { jobs(filter: $filter, first: $first) { nodes { %s } } }"
                % _FIELDS,
                {"filter": wanted, "first": len(ids)},
            )["jobs"]["nodes"]
            for node in nodes:
                by_id[node["id"]]._take(node)
                found.append(by_id[node["id"]])
        return found

    def _address(self, path):
        base = self.url.rstrip("/")
        return (base[: -len("/graphql")] if base.endswith("/graphql") else base) + path

    def _send(self, url, body=None):
        """The body of the answer. Tries again where the service may answer later."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._send_once(url, body)
            except Error as error:
                if error.code not in PASSING or attempt == ATTEMPTS:
                    raise
                pause = min(LAST_PAUSE, FIRST_PAUSE * 2**attempt) * (0.5 + random.random() / 2)
                time.sleep(max(pause, getattr(error, "retry_after", 0)))

    def _send_once(self, url, body):
        headers = {"accept": "application/json"}
        if self.key:
            headers["authorization"] = "Bearer " + self.key
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=self.timeout) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise _error_of_answer(error) from None
        except OSError as error:
            raise Error("no response from %s: %s" % (url, error), "NETWORK") from None


def _key_here():
    path = os.path.join(os.environ.get("SWITCHYARD_HOME") or ".switchyard", "admin.key")
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def _error_of(errors):
    first = errors[0]
    extensions = first.get("extensions") or {}
    error = Error(first["message"], extensions.get("code") or "INTERNAL_SERVER_ERROR")
    error.retry_after = extensions.get("retryAfterS") or 0
    return error


def _error_of_answer(answer):
    """For an answer that is an error as a whole, be it of the service or of what stands before it."""
    try:
        return _error_of(json.loads(answer.read())["errors"])
    except (ValueError, KeyError, TypeError, LookupError, OSError):
        return Error("%s answered %d" % (answer.url, answer.code), "UNAVAILABLE" if answer.code >= 500 else "HTTP_%d" % answer.code)


def _pieces(all_of, size):
    return [all_of[at : at + size] for at in range(0, len(all_of), size)]


def _camel(name):
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _job_input(job):
    words = list(job["command"])
    if isinstance(job["command"], str) or not words or not all(isinstance(word, str) for word in words):
        raise TypeError('command: %r is not accepted; accepted: a list of texts, such as ["sleep", "10"]' % (job["command"],))
    given = {_camel(name): value for name, value in job.items()}
    environment = given.get("environment")
    if isinstance(environment, dict):
        given["environment"] = [{"name": name, "value": str(value)} for name, value in environment.items()]
    return dict(given, command=words[0], arguments=words[1:])
