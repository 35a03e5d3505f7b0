// The page: from the data at its foot to sections, each of which is left out where there is nothing to show.

const section = (id, title, lead, ...children) => ({ id, title, node: el("section", { id, "aria-labelledby": id + "-h" }, el("h2", { id: id + "-h", text: title }), lead ? el("p", { class: "lead", text: lead }) : null, ...children) });
const cards = (...children) => el("div", { class: "cards" }, ...children);

function overview(data) {
  const figures = (data.figures || []).map((f) => el("div", { class: "figure" }, el("div", { class: "label", text: f.label }), el("div", { class: "value" }, f.text ?? writerOf(f.unit)(f.value, f.digits || 4)), f.remark ? el("div", { class: "remark", text: f.remark }) : null));
  const facts = (data.facts || []).map((f) => el("div", {}, el("dt", { text: f.label }), el("dd", { text: f.value })));
  if (!figures.length && !facts.length && !(data.notes || []).length) return null;
  return section("overview", "Overview", null, (data.notes || []).length ? el("div", { class: "note", role: "note" }, data.notes.length === 1 ? data.notes[0] : el("ul", {}, ...data.notes.map((n) => el("li", { text: n })))) : null,
    figures.length ? el("div", { class: "figures" }, ...figures) : null, facts.length ? el("div", { class: "card" }, el("dl", { class: "facts" }, ...facts)) : null);
}

const training = (data) => data.curves && data.curves.length ? section("training", "Training", null, cards(...data.curves.map((c) => curveChart({ ...c, x: { label: "step", unit: "count", whole: true } })))) : null;

const PARTS = [["forward", "forward"], ["backward", "backward"], ["update", "update"], ["waiting for traffic", "exposed"], ["idle", "idle"]];
function stepSection(data) {
  const timeline = data.timeline;
  if (!timeline) return null;
  const list = [timelineCard(timeline)], several = timeline.tracks.length > 1;
  const rows = timeline.tracks.flatMap((t) => t.ranks.map((r) => ({ name: (several ? t.name + ", " : "") + r.label, remark: r.count > 1 ? `stands for ${countText(r.count)} ranks that do the same` : "", parts: PARTS.map(([name, color], i) => ({ name, color, value: r.parts_us[i] })) }))).slice(0, 48);
  list.push(barChart({ id: "usage", title: "Where the time goes", unit: "us", rows, legend: PARTS.filter((_, i) => timeline.tracks.some((t) => t.ranks.some((r) => r.parts_us[i] > 0))), dense: rows.length > 12 }));
  return section("step", "A step", timeline.lead, cards(...list));
}

function comparison(data) {
  const c = data.comparison;
  if (!c) return null;
  const rows = c.layers.slice(0, 14), chart = barChart({ id: "comparison", title: "Time by layer, measured and predicted", unit: "us", size: "full", legend: [["measured", "c0"], ["predicted", "c1"]],
    rows: rows.flatMap((l) => [{ name: l.layer, parts: [{ name: "measured", color: "c0", value: l.measured_us }] }, { name: "", remark: l.layer, note: l.measured_us > 0 ? `${microsText(l.predicted_us)} (${signedPercent(l.predicted_us / l.measured_us - 1)})` : microsText(l.predicted_us), parts: [{ name: "predicted", color: "c1", value: l.predicted_us }] }]), dense: true });
  const off = (p, m) => el("td", { class: Math.abs(p / m - 1) > 0.2 ? "bad" : "", text: m > 0 ? signedPercent(p / m - 1) : "–" });
  const table = el("div", { class: "card full" }, el("h3", { text: "Totals" }), el("div", { class: "scroll" }, dataTable(["", "measured", "predicted", "difference"], c.totals.map((t) => { const w = writerOf(t.unit); return [t.name, w(t.measured, 4), w(t.predicted, 4), off(t.predicted, t.measured)]; }))));
  return section("comparison", "Predicted and measured", "What the simulator said before the run, beside what was measured in it. Layers are sorted by measured time, on the first rank.", cards(table, c.layers.length ? chart : null));
}

const useColours = { parameters: "c5", optimizer: "c0", buffers: "whole", inputs: "c2", activations: "activation", gradients: "c3", messages: "gradient", workspace: "c4" };
const useColour = (use) => useColours[use] || "whole";
function memory(data) {
  const m = data.memory;
  if (!m) return null;
  const bands = m.bands.map((b) => ({ name: b.phase, from: b.from, to: b.to, color: "band-" + b.phase[0] }));
  const chart = curveChart({ id: "memory", title: `Memory of rank ${m.rank} over the step`, size: "full", height: 290, x: { label: "instruction", unit: "count", whole: true }, y: { label: "bytes in use", unit: "bytes", zero: true, room: 0.2 },
    series: m.uses.map((u) => ({ name: u.name, color: useColour(u.name), style: "area", points: m.at.map((x, k) => [x, u.bytes[k]]) })), bands, lines: [{ y: m.allocated_bytes, text: `allocated ${bytesText(m.allocated_bytes)}`, color: "faint" }],
    name_of: (at) => `${m.layers[m.at.indexOf(at)]} (instruction ${at})` });
  const rows = m.at_peak.map((h) => ({ name: h.name, parts: [{ name: h.use, color: useColour(h.use), value: h.bytes }] }));
  const list = [chart];
  if (rows.length) list.push(barChart({ id: "peak", title: `In use at the peak, in ${m.peak_layer}`, unit: "bytes", size: "half", rows, legend: [...new Map(m.at_peak.map((h) => [h.use, [h.use, useColour(h.use)]])).values()] }));
  if (m.ranks && m.ranks.length > 1) list.push(barChart({ id: "rank-memory", title: "Memory of each rank", unit: "bytes", size: "half", dense: m.ranks.length > 12, rows: m.ranks.map((r) => ({ name: r.label, remark: r.count > 1 ? `stands for ${countText(r.count)} ranks` : "", parts: [{ name: "for a step", color: "c0", value: r.arena_bytes }, { name: "state", color: "c5", value: r.state_bytes }] })), legend: [["for a step", "c0"], ["state", "c5"]] }));
  return section("memory", "Memory", "From the buffer plan: what is in use while each instruction runs, and what is allocated for it. Nothing is allocated during a step.", cards(...list));
}

function scaling(data) {
  const s = data.scaling;
  if (!s) return null;
  const x = { label: "ranks", unit: "count", log: true, each: true }, chart = (id, title, y, pick, extra = []) => {
    const series = s.series.map((line, i) => ({ name: line.name, color: "c" + i, style: "points", points: line.points.filter((p) => pick(p) !== undefined && pick(p) !== null).map((p) => [p.ranks, pick(p)]) })).filter((l) => l.points.length);
    return series.length ? curveChart({ id, title, x, y, series: [...series, ...extra.filter((e) => e.points.length > 1)], size: "half" }) : null;
  };
  const ideal = s.ideal.length > 1, dash = (pick) => ideal ? [{ name: "ideal", color: "faint", style: "dash", points: s.ideal.map((p) => [p.ranks, p[pick]]) }] : [];
  const points = s.series[0].points.filter((p) => p.step_ms), split = points.some((p) => p.waiting_ms !== undefined);
  const list = [chart("scaling-time", "Time of a step", { label: "time of a step", unit: "ms", log: true }, (p) => p.step_ms, dash("step_ms")),
    chart("scaling-throughput", "Throughput", { label: "samples per second", unit: "count", log: true }, (p) => p.samples_per_s, dash("samples_per_s")),
    chart("scaling-efficiency", "Efficiency", { label: "of ideal scaling", unit: "percent", zero: true, max: 1 }, (p) => p.efficiency),
    split ? barChart({ id: "scaling-parts", title: "What a step is made of", unit: "percent", size: "half", legend: [["computing", "forward"], ["waiting for traffic", "exposed"]], rows: points.map((p) => ({ name: countText(p.ranks).trim() + (p.ranks === 1 ? " rank" : " ranks"), remark: p.limit || "", parts: [{ name: "computing", color: "forward", value: Math.max(0, 1 - p.waiting_ms / p.step_ms) }, { name: "waiting for traffic", color: "exposed", value: Math.min(1, p.waiting_ms / p.step_ms) }], note: microsText(p.step_ms * 1e3) })), dense: points.length > 10 }) : null,
    chart("scaling-memory", "Memory of a rank", { label: "most of any rank", unit: "bytes", log: true }, (p) => p.memory_bytes), chart("scaling-energy", "Energy of a step", { label: "all ranks", unit: "joules", log: true }, (p) => p.joules)];
  const shownCharts = list.filter(Boolean);
  if (shownCharts.length % 2) shownCharts[shownCharts.length - 1].classList.replace("half", "full");
  const columns = ["ranks", "batch", "time of a step", "samples/s", "efficiency", "waiting", "memory of a rank", "<limited by"], w = (v, f) => v === undefined || v === null ? "" : f(v);
  for (const line of s.series) list.push(el("div", { class: "card full" }, el("div", { class: "head" }, el("h3", { text: s.series.length > 1 ? `In numbers: ${line.name}` : "In numbers" })), el("div", { class: "scroll", tabindex: "0" }, dataTable(columns, line.points.map((p) => [numberText(p.ranks, 7), w(p.batch, (v) => numberText(v, 7)), p.failure ? el("td", { class: "left", colspan: 6, style: "text-align:left;color:var(--warn);white-space:normal", text: p.failure }) : w(p.step_ms, (v) => microsText(v * 1e3, 4)), ...(p.failure ? [] : [w(p.samples_per_s, (v) => countText(v, 4)), w(p.efficiency, (v) => percentText(v, 3)), w(p.waiting_ms, (v) => microsText(v * 1e3)), w(p.memory_bytes, (v) => bytesText(v)), el("td", { class: "left", text: p.limit || "" })])])))));
  return section("scaling", "Scaling", s.lead, cards(...list));
}

function planSection(data) {
  const p = data.plan;
  if (!p) return null;
  const list = [];
  if (p.grids && p.grids.length) list.push(el("div", { class: "card full" }, el("div", { class: "head" }, el("h3", { text: p.grids.length === 1 ? "Grid of ranks" : "Grids of ranks" })), gridBoxes(p.grids)));
  list.push(networkCard(p));
  if (p.unfollowed && p.unfollowed.length) list.push(el("div", { class: "card full" }, el("h3", { text: "Layers that could not follow the plan" }), el("div", { class: "scroll", tabindex: "0" }, dataTable(["layer", "<axis", "<reason"], p.unfollowed.map((u) => [u.layer, el("td", { class: "left", text: u.axis }), el("td", { class: "left", style: "white-space:normal", text: u.reason })])))));
  return section("plan", "Plan", p.lead, cards(...list));
}

function emptyState(data) {
  if (["curves", "scaling", "timeline", "memory", "plan"].some((part) => data[part] && data[part].length !== 0)) return null;
  return { id: "empty", node: el("div", { class: "empty", text: data.live ? "The run has just begun: the first curves appear with its first line of metrics." : "There is nothing to draw yet: the run has written no metrics." }) };
}

// Every section with the data that it depends on: one whose data are as before stays as it is, with its zoom and whatever was opened in it.
const SECTIONS = [[overview, (d) => [d.figures, d.facts, d.notes]], [emptyState, (d) => [d.live, Boolean(d.curves && d.curves.length), Object.keys(d)]], [training, (d) => d.curves], [scaling, (d) => d.scaling],
  [stepSection, (d) => d.timeline], [comparison, (d) => d.comparison], [memory, (d) => d.memory], [planSection, (d) => d.plan]];
let sections = SECTIONS.map(() => ({}));

function render(data) {
  document.title = data.title + " – Convoy";
  document.getElementById("kind").textContent = data.kind === "simulation" ? "simulation" : "training run";
  document.getElementById("title").textContent = data.title;
  document.getElementById("status").replaceChildren(data.status ? el("span", { class: "pill " + data.status.state, text: data.status.text }) : "");
  document.getElementById("source").textContent = data.source || "";
  document.getElementById("footer").textContent = [data.made_by || "Convoy", data.written].filter(Boolean).join(" · ");
  sections = SECTIONS.map(([make, part], i) => {
    const key = JSON.stringify(part(data)) || "";
    return sections[i].key === key ? sections[i] : { key, ...make(data) };
  });
  const shownNow = sections.filter((s) => s.node), main = document.getElementById("content"), nav = document.getElementById("contents");
  for (const child of [...main.children]) if (!shownNow.some((s) => s.node === child)) child.remove();
  let next = main.firstElementChild;
  for (const s of shownNow) { if (s.node === next) next = next.nextElementSibling; else main.insertBefore(s.node, next); }
  forgetRemoved();
  const titled = shownNow.filter((s) => s.title);
  if ([...nav.children].map((a) => a.textContent).join() !== titled.map((s) => s.title).join()) nav.replaceChildren(...titled.map((s) => el("a", { href: "#" + s.id, text: s.title })));
  follow(nav);
}

// Which section is being read.
let spy = null;
function follow(nav) {
  if (spy) spy.disconnect();
  const links = new Map([...nav.children].map((a) => [a.getAttribute("href").slice(1), a]));
  spy = new IntersectionObserver((entries) => { for (const e of entries) if (e.isIntersecting) { for (const a of links.values()) a.removeAttribute("aria-current"); links.get(e.target.id).setAttribute("aria-current", "true"); } }, { rootMargin: "-20% 0px -70% 0px" });
  for (const id of links.keys()) spy.observe(document.getElementById(id));
}

// A live page asks its server for what is new.
async function watchServer(version) {
  const lost = (text) => document.getElementById("status").replaceChildren(el("span", { class: "pill lost", text }));
  for (;;) {
    await new Promise((done) => setTimeout(done, document.hidden ? 5000 : 1500));
    try {
      const answer = await fetch("data.json?since=" + encodeURIComponent(version));
      if (answer.status === 204) { document.querySelector(".pill.lost") && render(shown); continue; }
      if (!answer.ok) { lost((await answer.text()).trim()); continue; }
      shown = await answer.json();
      version = shown.version;
      render(shown);
    } catch { lost("no connection to convoy watch; this is the last it said"); }
  }
}

let shown = JSON.parse(document.getElementById("data").textContent);
render(shown);
if (shown.live && location.protocol.startsWith("http")) watchServer(shown.version);
