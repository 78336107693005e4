"""bench/regression.py with measurements made up: measuring again, exit codes, what --save keeps."""

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import regression  # noqa: E402  found through the path above

EARLIER = [0.5, 0.5, 0.5]


def row(ratio):
    return {"ratios": [ratio] * 3, "device": "some device", "median_ms": ratio, "xla_median_ms": 1.0, "median_ratio": ratio, "spread": 1.0}


class Canned:
    """A piece of work whose measurements are given."""

    def __init__(self, *rows):
        self.rows, self.taken, self.iterations, self.rounds = rows, 0, 7, 3

    def measure(self, flags, folder):
        assert (flags.iterations, flags.rounds) == (7, 3) and os.path.isdir(folder)
        self.taken += 1
        return self.rows[self.taken - 1]


def judged(works, earlier=None):
    flags = argparse.Namespace(iterations=1, rounds=5)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        found = regression.judged(works, flags, {name: EARLIER for name in works} if earlier is None else earlier)
    return found, out.getvalue()


class Judged(unittest.TestCase):
    def check(self, rows, taken, ratio, word):
        work = Canned(*rows)
        found, judgement = judged({"a": work})[0]["a"]
        self.assertEqual((taken, ratio, word), (work.taken, found["ratios"][0], judgement[0]))

    def test_only_what_looks_slower_is_measured_again(self):
        self.check([row(0.52)], 1, 0.52, "same")
        self.check([row(0.3)], 1, 0.3, "faster")

    def test_slower_if_both_say_so(self):
        self.check([row(0.8), row(0.7)], 2, 0.7, "slower")
        self.check([row(0.8), row(0.9)], 2, 0.8, "slower")
        self.check([row(0.8), row(0.51)], 2, 0.51, "same")

    def test_what_looks_slower_is_measured_again_after_the_others(self):
        _, text = judged({"a": Canned(row(0.8), row(0.5)), "b": Canned(row(0.5))})
        self.assertEqual(["a", "b", "a,"], [line.split()[0] for line in text.splitlines()])

    def test_without_a_baseline_nothing_is_slower(self):
        work = Canned(row(9.0))
        self.assertEqual("new", judged({"a": work}, {})[0]["a"][1][0])
        self.assertEqual(1, work.taken)

    def test_a_failure_is_no_verdict(self):
        for rows in ([{"error": "differs"}], [row(0.8), {"error": "differs"}]):
            self.assertEqual(({"error": "differs"}, None), judged({"a": Canned(*rows)})[0]["a"])


class Finish(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "cpu.json")

    def finish(self, rows, save=False, device="some device", add=False):
        baseline = {"device": device, "rows": {"a": EARLIER, "b": EARLIER}}
        verdicts = {name: None if "error" in r else regression.baselines.verdict(r["ratios"], EARLIER) for name, r in rows.items()}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = regression.finish(argparse.Namespace(json=None, save=save, add=add), self.path, baseline, rows, verdicts)
        return code, out.getvalue()

    def test_exit_codes_name_the_rows(self):
        self.assertEqual(0, self.finish({"a": row(0.5), "b": row(0.4)})[0])
        code, text = self.finish({"a": row(0.5), "b": row(0.7)})
        self.assertEqual(1, code)
        self.assertIn("slower: b\n", text)
        code, text = self.finish({"a": {"error": "x"}, "b": row(0.7)})
        self.assertEqual(2, code)
        self.assertIn("failed: a\n", text)

    def test_another_device_is_trouble_and_saves_nothing(self):
        code, text = self.finish({"a": row(0.5)}, save=True, device="another device")
        self.assertEqual(2, code)
        self.assertIn("this ran on some device", text)
        self.assertFalse(os.path.exists(self.path))

    def test_save_keeps_rows_that_were_not_measured(self):
        self.assertEqual(2, self.finish({"a": row(0.7), "c": {"error": "x"}}, save=True)[0])
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual({"a": [0.7] * 3, "b": EARLIER}, json.load(file)["rows"])

    def test_add_keeps_the_runs_that_were_saved(self):
        self.assertEqual(0, self.finish({"a": row(0.7), "c": row(0.9)}, save=True, add=True)[0])
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual({"a": [EARLIER, [0.7] * 3], "b": EARLIER, "c": [0.9] * 3}, json.load(file)["rows"])


if __name__ == "__main__":
    unittest.main()
