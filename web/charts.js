// Curves: series of points over one horizontal axis. `chart`: {id, title, x: {label, unit, log}, y: {label, unit, log}, series: [{name, color, style, points}]},
// where style is "line", "points" (joined by a thin line), "dash" or "area" (stacked on the one before), and points are [x, y] by rising x.

const scaleOf = (low, high, from, to, log) => {
  const f = log ? Math.log : (v) => v, a = f(low), b = f(high);
  const scale = (v) => from + (b === a ? 0.5 : (f(v) - a) / (b - a)) * (to - from);
  scale.invert = (p) => { const v = a + (p - from) / (to - from) * (b - a); return log ? Math.exp(v) : v; };
  return scale;
};

const stacked = (series) => {
  const result = [], base = new Map();
  for (const s of series) {
    if (s.style !== "area") { result.push({ ...s, drawn: s.points.map(([x, y]) => [x, y, 0]) }); continue; }
    result.push({ ...s, drawn: s.points.map(([x, y]) => { const low = base.get(x) || 0; base.set(x, low + y); return [x, low + y, low]; }) });
  }
  return result;
};

const extent = (values, log) => {
  let low = Infinity, high = -Infinity;
  for (const v of values) if (Number.isFinite(v) && (!log || v > 0)) { low = Math.min(low, v); high = Math.max(high, v); }
  return low > high ? null : [low, high];
};

// The range of the vertical axis. Ordinary axes that come near zero begin there.
const yRange = (values, axis, log) => {
  const found = extent(values, log);
  if (!found) return null;
  let [low, high] = found;
  if (log) return low === high ? [low / 2, high * 2] : [low / 1.12, high * 1.12];
  if (axis.max !== undefined) high = Math.max(high, axis.max);
  if (axis.zero || (low >= 0 && low < 0.5 * high)) low = 0;
  if (low === high && low > 0) low = 0;
  const room = (high - low || Math.abs(high) || 1) * (axis.room || 0.06);
  return [low === 0 ? 0 : low - room, axis.max !== undefined && high <= axis.max ? high : high + room];
};

function curveChart(chart) {
  let log = Boolean(chart.y.log);
  const write = writerOf(chart.y.unit || ""), writeX = writerOf(chart.x.unit || "");
  const series = chart.series.map((s, i) => ({ ...s, color: s.color || "c" + i }));
  const box = el("div", {});
  const card = el("div", { class: "card " + (chart.size || "half"), "data-chart": chart.id });
  const toggle = chart.y.log !== undefined && series.every((s) => s.points.every(([, y]) => y > 0))
    ? el("button", { type: "button", "aria-pressed": String(log), text: "log", title: "Logarithmic vertical axis", on: { click() { log = !log; toggle.setAttribute("aria-pressed", String(log)); draw(); } } }) : null;
  if (!toggle) log = false;
  card.append(el("div", { class: "head" }, el("h3", { text: chart.title }), el("div", { class: "grow" }),
    series.length > 1 ? legend(series.map((s) => [s.name, s.color, s.style === "area" ? "" : s.style === "dash" ? "dash" : "line"])) : null, toggle), box);

  const draw = () => {
    const width = box.clientWidth, height = chart.height || (width < 480 ? 210 : 240);
    if (!width) return;
    const drawn = stacked(series), tops = drawn.flatMap((s) => s.drawn.map((p) => p[1])).concat((chart.lines || []).map((l) => l.y));
    const range = yRange(tops, chart.y, log), xs = extent(series.flatMap((s) => s.points.map((p) => p[0])), chart.x.log);
    if (!range || !xs) { box.replaceChildren(el("p", { class: "lead", text: "No finite value to draw." })); return; }
    const [x0, x1] = xs[0] === xs[1] ? (chart.x.log ? [xs[0] / 1.5, xs[1] * 1.5] : [xs[0] - 1, xs[1] + 1]) : xs;
    const ticks = (log ? logTicks : linearTicks)(range[0], range[1], 5), labels = ticks.map((t) => write(t, 3));
    const left = 14 + Math.max(...labels.map((t) => t.length)) * 6.9, right = 12, top = 20, bottom = 38;
    const x = scaleOf(x0, x1, left, width - right, chart.x.log), y = scaleOf(range[0], range[1], height - bottom, top, log);
    const svg = svgEl("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: "0", "aria-label": describe(), "data-points": series.reduce((n, s) => n + s.points.length, 0) });
    drawBands(svg, x, top, height - bottom);
    ticks.forEach((t, i) => svg.append(svgEl("line", { class: "gridline", x1: left, x2: width - right, y1: y(t), y2: y(t) }), svgEl("text", { class: "tick-y", x: left - 8, y: y(t) + 4, "text-anchor": "end", text: labels[i] })));
    drawXAxis(svg, x, [x0, x1], { left, right: width - right, y: height - bottom });
    svg.append(svgEl("text", { class: "title label-y", x: 0, y: 10, text: chart.y.label }), svgEl("text", { class: "title label-x", x: width - right, y: height - 4, "text-anchor": "end", text: chart.x.label }));
    for (const s of drawn) drawSeries(svg, s, x, y);
    for (const line of chart.lines || []) svg.append(svgEl("line", { x1: left, x2: width - right, y1: y(line.y), y2: y(line.y), stroke: `var(--${line.color})`, "stroke-dasharray": "5 4", "stroke-width": 1.5 }), svgEl("text", { x: width - right, y: y(line.y) - 5, "text-anchor": "end", style: `fill:var(--${line.color})`, text: line.text }));
    const cursor = svgEl("g", {});
    svg.append(cursor);
    listen(svg, cursor, x, y, { top, bottom: height - bottom, left, right: width - right });
    box.replaceChildren(svg);
  };

  const describe = () => chart.title + ". " + series.filter((s) => s.points.length).map((s) => {
    const ys = s.points.map((p) => p[1]).filter(Number.isFinite), last = s.points[s.points.length - 1];
    return `${s.name}: ${s.points.length} points from ${write(Math.min(...ys))} to ${write(Math.max(...ys))}, ${write(last[1])} at ${chart.x.label} ${writeX(last[0])}`;
  }).join("; ") + ". Use the arrow keys to read values.";

  const drawBands = (svg, x, top, bottom) => {
    for (const band of chart.bands || []) {
      svg.append(svgEl("rect", { x: x(band.from), width: Math.max(0, x(band.to) - x(band.from)), y: top, height: bottom - top, fill: `var(--${band.color})` }));
      if (x(band.to) - x(band.from) > band.name.length * 7) svg.append(svgEl("text", { class: "title", x: x(band.from) + 6, y: top + 13, text: band.name }));
    }
  };
  const drawXAxis = (svg, x, [x0, x1], frame) => {
    svg.append(svgEl("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.y, y2: frame.y }));
    const room = Math.max(2, Math.floor((frame.right - frame.left) / 56)), all = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
    let ticks = chart.x.each ? all : (chart.x.log ? logTicks : linearTicks)(x0, x1, room);
    if (chart.x.whole) ticks = ticks.filter(Number.isInteger);
    const half = (t) => writeX(t, 6).length * 3.5, taken = [];
    if (chart.x.each) ticks = [ticks[ticks.length - 1], ...ticks.slice(0, -1)];  // the last counts most
    for (const t of ticks) {
      const text = writeX(t, 6), at = Math.min(Math.max(x(t), frame.left - 6 + half(t)), frame.right - half(t) + 6);
      if (taken.some(([from, to]) => at + half(t) > from - 10 && at - half(t) < to + 10)) continue;
      taken.push([at - half(t), at + half(t)]);
      svg.append(svgEl("line", { class: "axis", x1: x(t), x2: x(t), y1: frame.y, y2: frame.y + 4 }), svgEl("text", { class: "tick-x", x: at, y: frame.y + 17, "text-anchor": "middle", text }));
    }
  };
  const drawSeries = (svg, s, x, y) => {
    const ok = s.drawn.filter((p) => Number.isFinite(p[1]) && (!log || p[1] > 0)), c = `var(--${s.color})`;
    const at = (p, v) => `${x(p[0]).toFixed(1)},${y(v).toFixed(1)}`;
    if (!ok.length) return;
    if (s.style === "area") {
      const steps = (list, level) => list.flatMap((p, i) => i ? [`${x(p[0]).toFixed(1)},${y(level(list[i - 1])).toFixed(1)}`, at(p, level(p))] : [at(p, level(p))]);
      svg.append(svgEl("polygon", { points: [...steps(ok, (p) => p[1]), ...steps(ok, (p) => p[2]).reverse()].join(" "), fill: c, "fill-opacity": 0.82 }));
      return;
    }
    svg.append(svgEl("polyline", { class: "series", points: ok.map((p) => at(p, p[1])).join(" "), stroke: c, "stroke-dasharray": s.style === "dash" ? "5 5" : null, "stroke-opacity": s.style === "points" ? 0.6 : 1, "stroke-width": s.style === "line" ? 2 : 1.6 }));
    if (s.style === "points" || ok.length <= 24 && s.style !== "dash") for (const p of ok) svg.append(svgEl("circle", { cx: x(p[0]), cy: y(p[1]), r: s.style === "points" ? 4 : 3, fill: c, stroke: "var(--card)", "stroke-width": 1.5 }));
  };

  // The pointer or the arrow keys choose a place on the horizontal axis; every series tells its value nearest to it.
  const listen = (svg, cursor, x, y, frame) => {
    const places = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
    let chosen = -1;
    const nearest = (list, at) => { let best = 0; for (let i = 1; i < list.length; i++) if (Math.abs(x(list[i]) - at) < Math.abs(x(list[best]) - at)) best = i; return best; };
    const show = (index, clientY) => {
      chosen = index;
      const at = places[index], rows = [], area = svg.getBoundingClientRect();
      cursor.replaceChildren(svgEl("line", { class: "cursor", x1: x(at), x2: x(at), y1: frame.top, y2: frame.bottom }));
      for (const s of stacked(series)) {
        if (!s.drawn.length) continue;
        const i = nearest(s.drawn.map((p) => p[0]), x(at)), p = s.drawn[i];
        if (!Number.isFinite(p[1]) || s.style !== "area" && Math.abs(x(p[0]) - x(at)) > 40) continue;
        if (s.style !== "area" && (!log || p[1] > 0)) cursor.append(svgEl("circle", { cx: x(p[0]), cy: y(p[1]), r: 4.5, fill: `var(--${s.color})`, stroke: "var(--card)", "stroke-width": 2 }));
        rows.push([s.color, s.name + (p[0] === at ? "" : ` (${writeX(p[0], 6)})`), write(p[1] - p[2], 5)]);
      }
      if (series.some((s) => s.style === "area")) { rows.reverse(); rows.push([null, "in all", write(series.reduce((sum, s) => sum + (s.style === "area" ? s.points[nearest(s.points.map((p) => p[0]), x(at))][1] : 0), 0), 5)]); }
      tip.show(area.left + x(at) * area.width / svg.viewBox.baseVal.width, clientY || area.top + area.height / 2, chart.name_of ? chart.name_of(at) : `${chart.x.label} ${writeX(at, 7)}`, rows);
    };
    const hide = () => { cursor.replaceChildren(); tip.hide(); };
    for (const type of ["pointermove", "pointerdown"]) svg.addEventListener(type, (e) => { const area = svg.getBoundingClientRect(); show(nearest(places, (e.clientX - area.left) * svg.viewBox.baseVal.width / area.width), e.clientY); });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -places.length, End: places.length }[e.key];
      if (e.key === "Escape") hide();
      if (!step) return;
      e.preventDefault();
      show(Math.max(0, Math.min(places.length - 1, chosen + step)));
    });
  };

  card.append(numbersBehind(() => {
    const places = [...new Set(series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b), maps = series.map((s) => new Map(s.points));
    return dataTable([chart.x.label, ...series.map((s) => s.name)], places.map((p) => [(chart.name_of || ((v) => writeX(v, 7)))(p), ...maps.map((m) => m.has(p) ? write(m.get(p), 6) : "")]));
  }));
  drawInto(box, draw);
  return card;
}

// Bars that lie: one row for each entry, its parts one after the other, to one scale. rows: [{name, remark, parts: [{name, color, value}]}].
function barChart(chart) {
  const write = writerOf(chart.unit || ""), box = el("div", {});
  const card = el("div", { class: "card " + (chart.size || "full"), "data-chart": chart.id });
  card.append(el("div", { class: "head" }, el("h3", { text: chart.title }), el("div", { class: "grow" }), legend(chart.legend)), box);
  const total = (row) => row.parts.reduce((sum, p) => sum + p.value, 0), most = Math.max(...chart.rows.map(total));
  const draw = () => {
    const width = box.clientWidth;
    if (!width || !(most > 0)) return;
    const label = Math.min(width * 0.44, 12 + 7.2 * Math.max(...chart.rows.map((r) => r.name.length))), end = 74, h = chart.dense ? 18 : 24;
    const height = chart.rows.length * h + 30, x = scaleOf(0, most, label, width - end);
    const svg = svgEl("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": chart.title + ": " + chart.rows.slice(0, 12).map((r) => `${r.name} ${write(total(r))}`).join(", "), "data-points": chart.rows.length });
    for (const t of linearTicks(0, most, Math.max(2, Math.floor((width - label - end) / 90)))) svg.append(svgEl("line", { class: "gridline", x1: x(t), x2: x(t), y1: 0, y2: height - 26 }), svgEl("text", { class: "tick-x", x: x(t), y: height - 10, "text-anchor": "middle", text: write(t) }));
    chart.rows.forEach((row, i) => {
      let from = 0;
      const name = svgEl("text", { class: "tick-y", x: label - 8, y: i * h + h / 2 + 4, "text-anchor": "end", text: shorten(row.name, label - 8) });
      const tell = (e) => tip.show(e.clientX, e.clientY, row.name, row.parts.filter((p) => p.value > 0).map((p) => [p.color, p.name, write(p.value, 4)]).concat(row.parts.length > 1 ? [[null, "in all", write(total(row), 4)]] : []), row.remark);
      const g = svgEl("g", { on: { pointermove: tell, pointerdown: tell, pointerleave: () => tip.hide() } });
      g.append(svgEl("rect", { x: 0, y: i * h, width, height: h, fill: "transparent" }), name);
      for (const p of row.parts) { if (p.value > 0) g.append(svgEl("rect", { class: "bar-part", x: x(from), y: i * h + 3, width: Math.max(0.5, x(from + p.value) - x(from)), height: h - 6, fill: `var(--${p.color})`, rx: 2, "fill-opacity": p.soft ? 0.55 : 1 })); from += p.value; }
      g.append(svgEl("text", { x: x(from) + 6, y: i * h + h / 2 + 4, text: row.note || write(total(row)) }));
      svg.append(g);
    });
    box.replaceChildren(svg);
  };
  card.append(numbersBehind(() => dataTable(["", ...chart.legend.map((l) => l[0]), "in all"], chart.rows.map((r) => [r.name, ...chart.legend.map(([n]) => { const p = r.parts.find((q) => q.name === n); return p ? write(p.value, 5) : ""; }), write(total(r), 5)]))));
  drawInto(box, draw);
  return card;
}
const shorten = (text, width) => { const most = Math.max(4, Math.floor(width / 6.9)); return text.length <= most ? text : "…" + text.slice(text.length - most + 1); };
