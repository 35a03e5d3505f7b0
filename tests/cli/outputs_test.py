#!/usr/bin/env python3
"""What a run writes beside its checkpoints: the table of metrics, TensorBoard's event files, traces; and weights that begin or stay as they are.

    outputs_test.py PATH_OF_CONVOY [test names...]

Needs nothing but Python's standard library; the event files are read by a reader of its own.
"""

import csv
import json
import struct
import tempfile
from pathlib import Path

import cli_testing
from cli_testing import CliTest, convoy, newest_checkpoint
from tensor_files import read_safetensors

SMALL = ["--data", "synthetic", "--train-samples", "64", "--test-samples", "32", "--batch", "16", "--epochs", "2", "--threads", "1", "--log-every", "2"]


def crc32c(data):
    total = 0xFFFFFFFF
    for byte in data:
        total ^= byte
        for _ in range(8):
            total = (total >> 1) ^ (0x82F63B78 if total & 1 else 0)
    return total ^ 0xFFFFFFFF


def masked(data):
    c = crc32c(data)
    return (((c >> 15) | (c << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """The fields of a protocol buffer: (number, value); values are integers, 8 or 4 bytes, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    result = []
    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value = data[at : at + size]
            assert len(value) == size, "a field is cut off"
            at += size
        result.append((key >> 3, value))
    return result


def events(path):
    """(step, tag, kind, payload) of every summary; the checksums are checked."""
    data, at, found, first = Path(path).read_bytes(), 0, [], True
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at : at + 8])
        record = data[at + 12 : at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(record)
        at += 16 + size
        event = dict(fields(record))
        if first:
            assert event[3] == b"brain.Event:2", event
        first = False
        if 7 in event:
            found.append((event.get(2, 0), "", "restart", dict(fields(event[7]))))
        if 5 not in event:
            continue
        for number, value in fields(event[5]):
            assert number == 1
            value = dict(fields(value))
            tag = value[1].decode()
            if 2 in value:
                found.append((event.get(2, 0), tag, "scalar", struct.unpack("<f", value[2])[0]))
            elif 4 in value:
                found.append((event.get(2, 0), tag, "image", dict(fields(value[4]))))
            else:
                found.append((event.get(2, 0), tag, "histogram", dict(fields(value[5]))))
    return found


def doubles(data):
    return [v for (v,) in struct.iter_unpack("<d", data)]


def newest_state(run):
    return newest_checkpoint(run) / "state.safetensors"


def newest_bytes(run):
    """The bytes of every state of a run, by name."""
    return {name: data for name, (_, _, data) in read_safetensors(newest_state(run)).items()}


class OutputsTest(CliTest):
    def trained(self, *arguments, run="run"):
        self.succeeds("train", "lenet5", *SMALL, "--run-dir", self.dir / run, *arguments)
        return self.dir / run

    def refuse(self, *arguments, naming):
        done = convoy("train", "lenet5", *SMALL, "--run-dir", tempfile.mkdtemp(dir=self.dir), *arguments)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(naming, done.stderr)

    def test_the_table_says_what_the_lines_say(self):
        run = self.trained()
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        with open(run / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), len(lines))
        for line, row in zip(lines, rows):
            for name, value in line.items():
                self.assertEqual(row[name], value if isinstance(value, str) else json.dumps(value), name)
            self.assertTrue(all(row[name] == "" for name in row if name not in line))
        # Going on drops and repeats no row.
        self.succeeds("train", "--resume", run, "--epochs", "3")
        with open(run / "metrics.csv", newline="") as file:
            more = list(csv.DictReader(file))
        self.assertEqual(more[: len(rows)], rows)
        self.assertEqual([r["step"] for r in more if r["kind"] == "epoch"], ["4", "8", "12"])

    def check_events(self, *ranks):
        run = self.trained("--tensorboard", "--freeze", "*.bias", *ranks)
        (file,) = run.glob("events.out.tfevents.*")
        found = events(file)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        losses = {(step, tag): value for step, tag, kind, value in found if kind == "scalar"}
        for line in lines:
            tag = ("train/" if line["kind"] == "step" else "epoch/") + "loss"
            self.assertAlmostEqual(losses[line["step"], tag], line["loss"], places=5)
        images = [value for _, _, kind, value in found if kind == "image"]
        self.assertEqual(len(images), 8)
        self.assertEqual((images[0][1], images[0][2]), (28, 28))
        self.assertTrue(images[0][4].startswith(b"\x89PNG"))
        state = newest_bytes(run)
        weights = {(step, tag): value for step, tag, kind, value in found if kind == "histogram"}
        learned = [n for n in state if not n.startswith("optimizer.") and n.endswith(".weight")]
        self.assertGreater(len(learned), 3)
        for name in learned:
            numbers = [v for (v,) in struct.iter_unpack("<f", state[name])]
            histogram = weights[8, "parameters/" + name]
            self.assertAlmostEqual(doubles(histogram[1])[0], min(numbers))
            self.assertAlmostEqual(doubles(histogram[2])[0], max(numbers))
            self.assertEqual(doubles(histogram[3])[0], len(numbers))
            self.assertEqual(sum(doubles(histogram[7])), len(numbers))
            self.assertEqual(sum(doubles(weights[8, "gradients/" + name][7])), len(numbers))
        self.assertNotIn((8, "gradients/" + learned[0].replace("weight", "bias")), weights)
        return {tag: value for (step, tag), value in weights.items() if step == 4}

    def test_event_files_hold_metrics_examples_and_histograms(self):
        self.check_events()

    def test_event_files_of_ranks_hold_whole_parameters(self):
        self.check_events("--plan", "sample:2")
        self.temporary.cleanup()
        self.setUp()
        self.check_events("--plan", "zero", "--ranks", "2")

    def test_a_resumed_run_begins_a_new_event_file(self):
        run = self.trained("--tensorboard")
        first = set(run.glob("events.out.tfevents.*"))
        self.succeeds("train", "--resume", run, "--epochs", "3", "--tensorboard")
        (second,) = set(run.glob("events.out.tfevents.*")) - first
        self.assertIn((8, "", "restart", {1: 1}), events(second))

    def test_traces_of_all_ranks(self):
        for plan, ranks, queues in (("", 1, {"compute", "host"}), ("sample:2", 2, {"compute", "gradient", "host"})):
            trace = self.dir / f"trace{ranks}.json"
            self.trained("--trace", trace, "--trace-steps", "2", *(["--plan", plan] if plan else []), run=f"run{ranks}")
            document = json.loads(trace.read_text())
            complete = [e for e in document["traceEvents"] if e["ph"] == "X"]
            self.assertEqual({e["pid"] for e in complete}, set(range(ranks)))
            self.assertLessEqual(queues, {document["queues"][e["tid"]] for e in complete})
            self.assertEqual({e["args"]["step"] for e in complete}, {2, 3})
            for rank in range(ranks):
                lane = sorted((e["ts"], e["ts"] + e["dur"]) for e in complete if (e["pid"], e["tid"]) == (rank, 0))
                self.assertTrue(all(a[1] <= b[0] + 1e-3 for a, b in zip(lane, lane[1:])), "instructions of a queue overlap")
            names = {e["args"]["layer"] for e in complete}
            self.assertTrue(any(n.startswith("conv") or "conv" in n for n in names), names)
            if ranks > 1:
                self.assertGreater(sum(e["args"]["sent"] for e in complete), 0)
        self.succeeds("bench", "step", "lenet5", "--batch", "8", "--seconds", "0.1", "--threads", "1", "--plan", "sample:2", "--trace", self.dir / "b.json")
        self.assertEqual({e["pid"] for e in json.loads((self.dir / "b.json").read_text())["traceEvents"]}, {0, 1})

    def test_transfer(self):
        base = self.trained(run="base")
        state = newest_bytes(base)
        weight = next(n for n in state if n.endswith(".weight") and not n.startswith("optimizer."))
        frozen, last = weight, [n for n in state if n.endswith(".weight") and not n.startswith("optimizer.")][-1]
        run = self.trained("--init", base, "--freeze", frozen, run="from-run")
        now = newest_bytes(run)
        self.assertEqual(now[frozen], state[frozen])
        self.assertNotEqual(now[last], state[last])
        self.assertNotIn(f"optimizer.{frozen}.momentum", now)
        self.assertEqual(json.loads((run / "config.json").read_text())["freeze"], [frozen])
        # Another number of classes: the last layer begins anew.
        done = convoy("train", "lenet5", *SMALL, "--run-dir", self.dir / "other", "--classes", "7", "--init", newest_state(base))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("of another shape", done.stderr)
        head = [n for n in state if not n.startswith("optimizer.") and n in done.stderr]
        self.assertTrue(head, done.stderr)
        layer = head[0].rsplit(".", 1)[0]
        self.trained("--classes", "7", "--init", newest_state(base), "--skip", layer + ".*", run="new-head")
        self.refuse("--init", base, "--skip", "nothing.*", naming='matches "nothing.*"')
        self.refuse("--freeze", "nothing.*", naming='matches "nothing.*"')
        self.refuse("--freeze", "*", naming="all of them are frozen")
        self.refuse("--skip", "*", naming="there is no init")
        self.refuse("--init", self.dir / "missing", naming="there is no such file")


if __name__ == "__main__":
    cli_testing.main(__doc__)
