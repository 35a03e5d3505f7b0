#!/usr/bin/env python3
"""Pages in a real browser: no error, no request to the network, every chart with data and axes, at desktop and phone width, light and dark.

    browser_test.py PATH_OF_CONVOY [FOLDER_FOR_SCREENSHOTS]

Exits with 77 when there is no Chromium (tools/install-deps browser).
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import browser
import pages
import report_test

# What every chart says about itself: how much it drew, and its labels.
CHARTS = """[...document.querySelectorAll('[data-chart]')].map(card => ({
  id: card.dataset.chart,
  points: [...card.querySelectorAll('[data-points]')].map(e => Number(e.dataset.points)),
  marks: card.querySelectorAll('polyline, polygon, circle, .bar-part, .mesh i').length,
  x: card.querySelectorAll('.tick-x').length, y: card.querySelectorAll('.tick-y').length,
  titles: [...card.querySelectorAll('.label-x, .label-y')].map(t => t.textContent),
  canvases: [...card.querySelectorAll('canvas')].map(c => {
    const pixels = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3]) seen.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
    return seen.size;
  })}))"""
CURVES = {"loss", "accuracy", "throughput", "rate", "memory", "scaling-time", "scaling-throughput", "scaling-efficiency", "scaling-memory", "scaling-energy"}
WIDTHS = [(1280, 900, False, False), (390, 844, False, True), (1280, 900, True, False), (390, 844, True, True)]


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def check_page(page, where, expected):
    check(not page.errors, f"{where}: the console says {page.errors}")
    check(all(u.startswith(("file:", "data:")) for u in page.requests), f"{where}: asks for {page.requests}")
    charts = {c["id"]: c for c in page.evaluate(CHARTS)}
    check(expected <= set(charts), f"{where}: expected the charts {sorted(expected)}, found {sorted(charts)}")
    for name, chart in charts.items():
        check(all(n > 0 for n in chart["points"]), f"{where}: {name} drew nothing: {chart}")
        if name == "timeline":
            check(chart["canvases"] and min(chart["canvases"]) > 5, f"{where}: the timeline is blank: {chart}")
        else:
            check(chart["marks"] > 0, f"{where}: {name} has no marks: {chart}")
        if name in CURVES:
            check(chart["x"] > 0 and chart["y"] > 1 and len(chart["titles"]) == 2 and all(chart["titles"]), f"{where}: {name} lacks axis labels: {chart}")
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    check(wide <= 0, f"{where}: the page is {wide} pixels wider than the window")
    nameless = page.evaluate("[...document.querySelectorAll('button, a, [role=img]')].filter(e => !(e.textContent.trim() || e.getAttribute('aria-label'))).length")
    check(nameless == 0, f"{where}: {nameless} controls or pictures have no name for a screen reader")
    return charts


def check_interaction(page):
    """Exact values under the pointer and the keys; zoom in the timeline."""
    page.evaluate("document.querySelector('[data-chart=loss] svg').scrollIntoView({block: 'center', behavior: 'instant'})")
    page.settle()
    at = page.evaluate("(r => [r.left + r.width / 2, r.top + r.height / 2])(document.querySelector('[data-chart=loss] svg').getBoundingClientRect())")
    page.move(*at)
    text = page.evaluate("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    check("step" in text and "training" in text, f"the tooltip of the loss says {text!r}")
    page.evaluate("document.querySelector('[data-chart=loss] svg').focus()")
    page.key("ArrowRight")
    keyed = page.evaluate("document.getElementById('tip').textContent")
    check(keyed != text and "training" in keyed, f"an arrow key left the tooltip at {keyed!r}")
    page.evaluate("document.querySelector('[data-chart=timeline] canvas').focus()")
    view = lambda: [float(v) for v in page.evaluate("document.querySelector('[data-chart=timeline] canvas').dataset.view").split()]
    whole = view()
    page.key("+")
    near = view()
    check(near[1] - near[0] < whole[1] - whole[0], f"+ changed the view from {whole} to {near}")
    page.key("0")
    check(view() == whole, "0 does not show the whole step again")
    check(not page.errors, f"the console says {page.errors}")


def check_live(chromium, program, run):
    report_test.CONVOY = program
    with report_test.Watch(run) as watch:
        page = chromium.open(watch.address)
        count = "Number(document.querySelector('[data-chart=loss] [data-points]').dataset.points)"
        before = page.evaluate(count)
        with open(run / "metrics.jsonl", "a") as lines:
            lines.write(json.dumps({"kind": "step", "step": 40, "epoch": 3, "loss": 0.01, "lr": 0.01, "samples_per_s": 100}) + "\n")
        page.wait_for(f"{count} === {before + 1}", 10)
        check(not page.errors, f"live: the console says {page.errors}")
        check(all(u.startswith((watch.address, "data:")) for u in page.requests), f"live: asks for {page.requests}")
    page.wait_for("document.querySelector('.pill.lost')", 10)


def main():
    if not browser.executable():
        print("SKIPPED: there is no Chromium; `tools/install-deps browser` installs it")
        return 77
    program = sys.argv[1]
    shots = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(prefix="convoy-pages-") as folder, browser.Browser() as chromium:
        run = pages.make_run(program, Path(folder) / "run")
        pages.write_prediction(run / "prediction", run)
        simulation = pages.write_simulation(Path(folder) / "simulation")
        subjects = [("run", run, run / "report.html", {"loss", "accuracy", "throughput", "rate", "timeline", "usage", "comparison", "memory", "peak", "grids", "network"}),
                    ("simulation", simulation, simulation / "report.html", {"scaling-time", "scaling-throughput", "scaling-efficiency", "scaling-parts", "scaling-memory", "scaling-energy", "timeline", "usage", "memory", "network"})]
        for name, source, path, expected in subjects:
            done = pages.convoy(program, "report", source)
            check(done.returncode == 0, done.stderr)
            check(path.stat().st_size < 3_000_000, f"{path.name} has {path.stat().st_size} bytes")
            for width, height, dark, touch in WIDTHS:
                page = chromium.open(path.as_uri(), width, height, dark, touch)
                charts = check_page(page, f"{name}, {width} pixels, {'dark' if dark else 'light'}", expected)
                if shots:
                    shots.mkdir(parents=True, exist_ok=True)
                    page.screenshot(shots / f"{name}-{width}-{'dark' if dark else 'light'}.png")
            print(f"{name}: {len(charts)} charts, {path.stat().st_size} bytes")
            if name == "run":
                check_interaction(chromium.open(path.as_uri()))
        live = Path(folder) / "live"
        shutil.copytree(run, live)
        check_live(chromium, program, live)
    print("no errors, no requests, all charts drawn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
