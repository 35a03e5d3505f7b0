#!/usr/bin/env python3
"""Pages without a browser: what `report` and `watch` write, serve and refuse.

    report_test.py PATH_OF_CONVOY [test names...]
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import pages

CONVOY = ""


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


class Watch:
    """`convoy watch` on a port of its own choice, until the end of the block."""

    def __init__(self, directory, *arguments):
        self.process = subprocess.Popen([CONVOY, "watch", str(directory), "--port", "0", *arguments], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        line = self.process.stdout.readline()
        found = re.search(r"http://[\d.]+:(\d+)/", line)
        assert found, line
        self.address, self.port = found.group(0), int(found.group(1))
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.code = self.process.wait(timeout=10)
        self.process.stdout.close()

    def get(self, path, **headers):
        with urllib.request.urlopen(urllib.request.Request(self.address + path, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="convoy-report-")
        cls.run_dir = pages.make_run(CONVOY, Path(cls.folder.name) / "run")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def refused(self, *arguments):
        done = pages.convoy(CONVOY, *arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("internal error", done.stderr)
        return done.stderr

    def test_a_run_leaves_what_a_report_needs(self):
        for name in ("config.json", "metrics.jsonl", "placement.json", "memory.json", "trace.json"):
            self.assertTrue((self.run_dir / name).exists(), name)
        trace = json.loads((self.run_dir / "trace.json").read_text())
        self.assertEqual({e["pid"] for e in trace["traceEvents"] if e["ph"] == "X"}, {0, 1})
        done = pages.convoy(CONVOY, "report", self.run_dir, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["parts"], ["curves", "timeline", "memory", "plan"])
        data = data_of((self.run_dir / "report.html").read_text())
        self.assertEqual(data["status"]["text"], "finished: 2 epochs, 32 steps")
        self.assertEqual(len(data["plan"]["layers"][0]["from"]), 0)
        uses = {u["name"] for u in data["memory"]["uses"]}
        self.assertLessEqual({"parameters", "optimizer", "activations", "gradients"}, uses)
        most = max(sum(u["bytes"][i] for u in data["memory"]["uses"]) for i in range(len(data["memory"]["at"])))
        self.assertLessEqual(most, data["memory"]["allocated_bytes"])

    def test_predicted_beside_measured(self):
        path = pages.write_prediction(Path(self.folder.name) / "prediction", self.run_dir)
        page = Path(self.folder.name) / "both.html"
        done = pages.convoy(CONVOY, "report", self.run_dir, "--predicted", path, "--output", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        comparison = data_of(page.read_text())["comparison"]
        self.assertEqual(comparison["totals"][0]["predicted"], 1.5)
        self.assertTrue(all(l["measured_us"] == l["predicted_us"] for l in comparison["layers"]))

    def test_a_simulation_of_4096_ranks_stays_small(self):
        path = pages.write_simulation(Path(self.folder.name) / "large")
        done = pages.convoy(CONVOY, "report", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = path / "report.html"
        self.assertLess(page.stat().st_size, 3_000_000)
        data = data_of(page.read_text())
        self.assertEqual(data["scaling"]["series"][0]["points"][-1]["ranks"], 4096)
        self.assertEqual(data["plan"]["grids"][0]["size"], 4096)

    def test_a_simulation_leaves_what_a_report_needs(self):
        folder = Path(self.folder.name) / "simulated"
        done = pages.convoy(CONVOY, "simulate", "lenet5", "--machine", "v100", "--plan", "data", "--ranks", "1,2,8", "--batch", 64, "--output", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = pages.convoy(CONVOY, "report", folder, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["parts"], ["scaling", "timeline", "memory", "plan"])
        data = data_of((folder / "report.html").read_text())
        self.assertEqual([p["ranks"] for p in data["scaling"]["series"][0]["points"]], [1, 2, 8])
        self.assertEqual(sum(r["count"] for r in data["timeline"]["tracks"][0]["ranks"]), 8)
        self.assertIn("holds a run", self.refused("simulate", "lenet5", "--machine", "v100", "--ranks", "1", "--output", self.run_dir))

    def test_what_is_refused(self):
        empty = Path(self.folder.name) / "empty"
        empty.mkdir()
        self.assertIn("is no run directory", self.refused("report", empty))
        self.assertIn("does not exist", self.refused("report", empty / "none"))
        self.assertIn("is no run directory", self.refused("watch", empty))
        shutil.copy(self.run_dir / "config.json", empty)
        self.assertIn("has no metrics", self.refused("report", empty))
        (empty / "metrics.jsonl").write_text('{"kind":"step","step":1,"loss":1}\n{"kind":\n')
        self.assertIn("metrics.jsonl: line 2 is no JSON object", self.refused("report", empty))
        (empty / "metrics.jsonl").write_text("")
        self.assertIn("holds nothing to draw yet", self.refused("report", empty))
        self.assertIn("is no run directory", self.refused("report", empty / "config.json", "--predicted", "x"))

    def test_watch_serves_what_is_new_to_this_machine_alone(self):
        run = Path(self.folder.name) / "live"
        shutil.copytree(self.run_dir, run)
        with Watch(run) as watch:
            status, page = watch.get("")
            self.assertEqual(status, 200)
            data = data_of(page)
            self.assertTrue(data["live"])
            self.assertEqual(watch.get("data.json?since=" + urllib.request.quote(data["version"]))[0], 204)
            before = len(data["curves"][0]["series"][0]["points"])
            with open(run / "metrics.jsonl", "a") as lines:
                lines.write('{"kind":"step","step":40,"epoch":3,"loss":0.01,"lr":0.01,"samples_per_s":100}\n')
            status, text = watch.get("data.json?since=" + urllib.request.quote(data["version"]))
            self.assertEqual(status, 200)
            self.assertEqual(len(json.loads(text)["curves"][0]["series"][0]["points"]), before + 1)
            with open(run / "metrics.jsonl", "a") as lines:
                lines.write("broken\n")
            with self.assertRaises(urllib.error.HTTPError) as failed:
                watch.get("data.json")
            self.assertIn("line", failed.exception.read().decode())
            failed.exception.close()
            with self.assertRaises(urllib.error.HTTPError) as failed:
                watch.get("", Host="evil.example")
            self.assertEqual(failed.exception.code, 403)
            failed.exception.close()
            self.assertIn("port is taken", self.refused("watch", self.run_dir, "--port", watch.port))
        self.assertEqual(watch.code, 0)


if __name__ == "__main__":
    CONVOY = sys.argv.pop(1)
    unittest.main()
