"""bench/models.py: its table without PyTorch, and what it says of a peer that differs."""

import os
import subprocess
import sys
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path.insert(0, BENCH)
import models  # noqa: E402  found through the path above
import runs  # noqa: E402


def report(*times):
    return {"best_ms": min(times), "median_ms": sorted(times)[len(times) // 2], "compile_s": 1.0, "peak_bytes": 2**20, "device": "cpu",
            "kernels": 1}


OURS, XLA = [report(1.0, 2.0), report(2.0, 3.0)], [report(4.0, 8.0), report(3.0, 4.0)]


def row(torch_rounds):
    return {"module": "small/one", **runs.compared(OURS, XLA), **torch_rounds.columns(OURS), "peak_over_live": 1.0}


def torch_rounds_of(reports, trouble):
    made = models.TorchRounds(True)
    made.reports, made.trouble = reports, trouble
    return made


class Models(unittest.TestCase):
    def test_without_torch_the_table_is_printed_and_says_so(self):
        # -S hides whatever packages are installed; "false" is an hlorun that fails.
        done = subprocess.run([sys.executable, "-S", os.path.join(BENCH, "models.py"), "--hlorun", "false", "small/one.hlo"],
                              capture_output=True, text=True, check=False)
        _, note, *header, line = done.stdout.splitlines()
        self.assertEqual("PyTorch is not installed: its columns are empty", note)
        self.assertEqual(models.HEADER.splitlines(), header)
        self.assertRegex(line, r"^small/one +false: exit code 1$")
        self.assertEqual(1, done.returncode)

    def test_columns_without_a_peer_are_empty(self):
        line = models.lines(row(models.TorchRounds(False)))
        self.assertEqual(["-"] * 10, line.split()[-10:])
        self.assertEqual(len(models.HEADER.splitlines()[-1]), len(line))

    def test_ratios_are_of_the_same_rounds(self):
        got = row(torch_rounds_of({"eager": [report(2.0), report(6.0)], "compiled": []}, {}))
        self.assertEqual([1.0, 0.5], got["eager_ratios"])
        self.assertEqual((2.0, 4.0, 0.5, 0.75, 2.0), tuple(got["eager_" + key] for key in
                                                           ("best_ms", "median_ms", "ratio", "median_ratio", "spread")))
        self.assertEqual([2.0 / 8.0, 3.0 / 4.0], got["ratios"])

    def test_a_peer_that_differs_in_one_round_has_no_times(self):
        got = row(torch_rounds_of({"eager": [report(2.0)], "compiled": [report(1.0)]}, {"eager": "differs: output 0"}))
        self.assertNotIn("eager_best_ms", got)
        self.assertIn("compiled_best_ms", got)
        self.assertTrue(models.lines(got).endswith("\n    PyTorch eager: differs: output 0"))
        self.assertEqual(1, models.failed([got]))

    def test_what_cannot_be_compiled_is_no_failure(self):
        got = row(torch_rounds_of({"eager": [], "compiled": []}, {"compiled": "not measured: no compiler"}))
        self.assertEqual(0, models.failed([got]))


if __name__ == "__main__":
    unittest.main()
