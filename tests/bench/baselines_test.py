"""bench/baselines.py: what counts as slower, the CPU's key, the file."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import baselines  # noqa: E402  found through the path above

QUIET = [0.50, 0.505, 0.495]
CPUINFO = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC
flags\t\t: fpu avx avx2 bmi2

processor\t: 1
vendor_id\t: other
"""


def word(ratios, earlier):
    return baselines.verdict(ratios, earlier)[0]


class Verdict(unittest.TestCase):
    def test_a_quiet_row(self):
        for factor, expected in ((1.0, "same"), (1.09, "same"), (0.92, "same"), (1.12, "slower"), (0.88, "faster")):
            self.assertEqual(expected, word([ratio * factor for ratio in QUIET], QUIET), factor)

    def test_scatter_of_either_run_widens_what_is_allowed(self):
        loud = [0.40, 0.50, 0.60]
        self.assertEqual("slower", word([0.57] * 3, QUIET))
        self.assertEqual("same", word([0.57] * 3, loud))
        self.assertEqual("same", word([0.46, 0.57, 0.68], QUIET))
        self.assertEqual("slower", word([0.92, 1.14, 1.37], QUIET))

    def test_runs_of_hours_that_lie_apart_allow_what_lies_between(self):
        for hours in ([[0.55] * 5, [0.75] * 3], [[0.55] * 3, [0.75] * 3, [0.55] * 3]):
            for ratio, expected in ((0.55, "same"), (0.65, "same"), (0.75, "same"), (0.81, "same"), (0.85, "slower"), (0.49, "faster")):
                self.assertEqual(expected, word([ratio] * 3, hours), (ratio, hours))

    def test_one_bad_round_neither_widens_nor_convicts(self):
        self.assertEqual("same", word([0.50, 0.505, 3.0], QUIET))
        self.assertEqual("slower", word([0.60, 0.606, 9.0], QUIET))

    def test_a_row_that_scatters_beyond_use_is_noisy(self):
        wild = [0.1, 0.5, 2.5]
        self.assertEqual("noisy", word(wild, QUIET))
        self.assertEqual("slower", word([ratio * 40 for ratio in wild], QUIET))

    def test_figures(self):
        _, change, limit = baselines.verdict([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
        self.assertEqual((2.0, baselines.TOLERANCE), (change, limit))
        self.assertAlmostEqual(1.25, baselines.scatter([0.8, 1.0, 1.25]))

    def test_a_row_without_baseline_is_new(self):
        self.assertEqual(("new", None, None), baselines.verdict(QUIET, None))


class ExitCode(unittest.TestCase):
    def test_trouble_beats_slower_beats_fine(self):
        self.assertEqual(0, baselines.exit_code(["same", "faster", "noisy", "new"], []))
        self.assertEqual(1, baselines.exit_code(["same", "slower"], []))
        self.assertEqual(2, baselines.exit_code(["same", "slower"], ["a"]))


class Key(unittest.TestCase):
    def test_first_processor_and_known_features(self):
        self.assertEqual("AuthenticAMD-25-1-2cores-avx2", baselines.cpu_key(CPUINFO, 2, ("avx2", "avx512f")))

    def test_no_flags(self):
        self.assertEqual("unknown-0-0-4cores", baselines.cpu_key("", 4, ("avx2",)))


class File(unittest.TestCase):
    def test_save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "baseline", "cpu.json")
            self.assertIsNone(baselines.load(path))
            for rows in ({"a": [1.0]}, {"b": [2.0]}):
                baselines.save(path, {"device": "x", "rows": rows})
                self.assertEqual({"device": "x", "rows": rows}, baselines.load(path))
            self.assertEqual(["cpu.json"], os.listdir(os.path.dirname(path)))


if __name__ == "__main__":
    unittest.main()
