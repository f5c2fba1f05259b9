"""Tests of switchyard.py against the service that SWITCHYARD_URL and SWITCHYARD_KEY name; test/cli/python.test.ts starts one."""

import os
import unittest

import switchyard

client = switchyard.Client(timeout=60)


class Jobs(unittest.TestCase):
    def test_output_and_exit_code(self):
        job = client.submit(["sh", "-c", 'echo "out $A"; echo err >&2; exit 3'], environment={"A": "b c"}, name="one")
        self.assertIs(job.wait(60), job)
        self.assertEqual((job.state, job.exit_code, job.ok, job.name), ("FAILED", 3, False, "one"))
        self.assertEqual((job.stdout(), job.stderr()), ("out b c\n", "err\n"))
        self.assertEqual(job.output("stdout"), b"out b c\n")
        self.assertEqual(client.job(job.id).cause, "EXITED_NONZERO")

    def test_map_gives_jobs_as_they_end(self):
        # The first goes on when the second is known to have ended.
        inputs = ["$(id) 'a'", "b"]
        line = '[ "$1" = b ] || until [ -e go ]; do sleep 0.1; done; echo "$1"'
        jobs = client.map(["sh", "-c", line, "sh", "{}"], inputs, working_directory=DIRECTORY)
        self.assertEqual([job.input for job in jobs], inputs)
        ended = []
        for job in client.as_completed(jobs, 60):
            ended.append((job.input, job.state, job.stdout()))
            open(os.path.join(DIRECTORY, "go"), "w").close()
        self.assertEqual(ended, [(one, "COMPLETED", one + "\n") for one in reversed(inputs)])

    def test_so_many_at_once(self):
        alone = "mkdir alone && sleep 0.1 && rmdir alone"
        jobs = client.map(lambda one: ["sh", "-c", alone, str(one)], range(4), at_once=1, working_directory=DIRECTORY)
        self.assertTrue(all(job.ok for job in client.wait(jobs, 60)))

    def test_the_same_key_gives_the_same_jobs(self):
        first = client.map(["true"], range(3), idempotency_key="python")
        again = client.map(["true"], range(3), idempotency_key="python")
        self.assertEqual([job.id for job in first], [job.id for job in again])
        with self.assertRaises(switchyard.Error) as raised:
            client.map(["false"], range(3), idempotency_key="python")
        self.assertEqual(raised.exception.code, "IDEMPOTENCY_KEY_REUSED")

    def test_more_jobs_than_one_query_takes(self):
        jobs = client.map(["true"], range(1001), held=True)
        self.assertEqual(len(client.cancel(jobs)), 1001)
        self.assertEqual({job.state for job in client.wait(jobs, 60)}, {"CANCELLED"})

    def test_cancel_and_time_limits(self):
        job = client.submit(["sleep", "600"], held=True)
        with self.assertRaises(TimeoutError):
            job.wait(0.2)
        self.assertTrue(job.cancel())
        self.assertEqual(job.wait(60).state, "CANCELLED")
        self.assertFalse(job.cancel())

    def test_errors(self):
        with self.assertRaisesRegex(switchyard.Error, "cpusPerTask"):
            client.submit(["true"], cpus_per_task=0)
        with self.assertRaisesRegex(switchyard.Error, "noSuchField"):
            client.submit(["true"], no_such_field=1)
        with self.assertRaisesRegex(switchyard.Error, "NOT_FOUND"):
            client.job("job_999999999")
        with self.assertRaisesRegex(TypeError, "sleep"):
            client.submit("sleep 10")
        with self.assertRaisesRegex(switchyard.Error, "UNAUTHENTICATED"):
            switchyard.Client(key="wrong").job("job_1")
        self.assertEqual(client.submit_all([]), [])


if __name__ == "__main__":
    import sys

    DIRECTORY = sys.argv.pop(1)
    unittest.main()
