// The plan as a drawn network: a row for each layer in the order of the forward pass, the flow between layers as lines in the gutter at the left, and
// where a layer's output and weights lie as coloured words. Layers that only follow the one before (batch norm, ReLU) share its row.

const placementColour = (word) => /^samples/.test(word) ? "sample" : /^(depth|height|width|\+halo)/.test(word) ? "space" : /^(channels|filters|inputs|features)/.test(word) ? "channel" : /^sum/.test(word) ? "sum" : "whole";
const chipsOf = (words, prefix) => {
  const parts = words.match(/sum of \d+|on rank \d+|\S+/g) || [];
  return parts.filter((w) => w !== "+halo").map((w) => el("span", { class: "chip", style: `--chip:var(--${placementColour(w)})`, text: (prefix || "") + w + (parts.includes("+halo") && placementColour(w) === "space" ? " + halo" : "") }));
};

// Chains of layers of which each reads only the one before and lies as it does, and brings no weights of its own beyond the first, become one row.
const foldedRows = (layers) => {
  const readers = new Map(), rowOf = new Map(), rows = [];
  for (const l of layers) for (const f of l.from || []) readers.set(f, (readers.get(f) || 0) + 1);
  const light = (l) => /^(batch_?norm|batch_stats|norm|stats|relu|prelu|leaky|dropout|reshape|flatten|tanh|sigmoid|softmax|normali[sz]e|activation)/.test((l.kind || "").split(" ")[0]);
  for (const l of layers) {
    const before = (l.from || []).length === 1 ? rowOf.get(l.from[0]) : null;
    const head = before && before.layers[before.layers.length - 1];
    if (before && head.layer === l.from[0] && readers.get(l.from[0]) === 1 && l.output === head.output && light(l)) before.layers.push(l);
    else rows.push({ layers: [l], from: [] });
    rowOf.set(l.layer, before && before.layers.includes(l) ? before : rows[rows.length - 1]);
  }
  rows.forEach((row, i) => { row.index = i; row.from = [...new Set((row.layers[0].from || []).map((f) => rowOf.get(f)).filter((r) => r && r !== row))]; });
  return rows;
};

// A column in the gutter for every line that does not go to the next row, each as far left as it can.
const laneColumns = (rows) => {
  const skips = rows.flatMap((to) => to.from.filter((f) => to.index - f.index > 1).map((from) => ({ from: from.index, to: to.index })));
  const columns = [];
  for (const s of skips.sort((a, b) => (a.to - a.from) - (b.to - b.from))) {
    s.column = columns.findIndex((taken) => taken.every((t) => t.to <= s.from || t.from >= s.to));
    if (s.column < 0) { s.column = columns.length; columns.push([]); }
    columns[s.column].push(s);
  }
  return { skips, count: columns.length };
};

function networkCard(plan) {
  const rows = foldedRows(plan.layers), { skips, count } = laneColumns(rows), gap = Math.max(5, Math.min(11, 60 / Math.max(1, count))), spine = 18 + count * gap, gutter = spine + 18;
  const sent = (r) => r.layers.reduce((sum, l) => sum + (l.activation_bytes_sent || 0) + (l.gradient_bytes_sent || 0), 0), most = Math.max(1, ...rows.map(sent));
  const card = el("div", { class: "card full", "data-chart": "network" });
  card.append(el("div", { class: "head" }, el("h3", { text: "Network" }), el("span", { class: "lead", style: "margin:0", text: `${plan.layers.length} layers` + (rows.length < plan.layers.length ? ` in ${rows.length} rows` : "") }), el("div", { class: "grow" }),
    legend([["samples", "sample"], ["space", "space"], ["channels, filters", "channel"], ["sum not yet reduced", "sum"], ["whole on every rank", "whole"]].filter(([, c]) => plan.layers.some((l) => [l.output, l.weight, l.input].some((w) => w && (w.match(/sum of \d+|on rank \d+|\S+/g) || []).some((x) => placementColour(x) === c)))))));
  const inner = el("div", { class: "net-inner", role: "list", "aria-label": "Layers with their placements", style: `--gutter:${gutter}px` });
  inner.append(el("div", { class: "layer headrow", "aria-hidden": "true" }, el("span", { text: "layer" }), el("span", { class: "what", text: "what it does" }), el("span", { text: "output, weights" }), el("span", { class: "num", text: "on a rank" }), el("span", { class: "traffic", text: "sent in a step" })));
  for (const r of rows) inner.append(layerRow(r, sent(r), most));
  card.append(el("div", { class: "net", tabindex: "0", "aria-label": "The network" }, inner));
  drawInto(inner, () => drawFlow(inner, rows, { skips, gap, spine }));
  return card;
}

function layerRow(row, sent, most) {
  const l = row.layers[0], last = row.layers[row.layers.length - 1], name = l.layer + (row.layers.length > 1 ? ` + ${row.layers.length - 1}` : "");
  const acts = row.layers.reduce((s, x) => s + (x.activation_bytes_sent || 0), 0), grads = row.layers.reduce((s, x) => s + (x.gradient_bytes_sent || 0), 0);
  const share = (v) => `width:${(100 * v / most).toFixed(1)}%`;
  const show = (x, y) => tip.show(x, y, row.layers.map((k) => k.layer).join(", "), [
    l.input ? [placementColour(l.input), "input", l.input] : null, l.weight ? [placementColour(l.weight), "weights", l.weight] : null, last.output ? [placementColour(last.output), "output", last.output] : null,
    last.local_output ? [null, "on a rank", last.local_output] : null, last.smallest_output && last.smallest_output !== last.local_output ? [null, "least on a rank", last.smallest_output] : null,
    ["activation", "activations sent", bytesText(acts)], ["gradient", "gradients sent", bytesText(grads)]].filter(Boolean), row.layers.map((k) => k.kind).filter(Boolean).join(", ") + (l.reason ? ` — ${l.reason}` : ""));
  const node = el("div", { class: "layer", role: "listitem", tabindex: "0", "aria-label": `${row.layers.map((k) => k.layer).join(", ")}: output ${last.output || "none"}${l.weight ? ", weights " + l.weight : ""}, sends ${bytesText(sent)}` },
    el("span", { class: "name", text: name }), el("span", { class: "what", text: row.layers.map((k) => (k.kind || "").split(" + ")[0]).filter(Boolean).join(", ") }),
    el("span", { class: "chips" }, ...chipsOf(last.output || ""), ...(l.weight && l.weight !== "whole" ? chipsOf(l.weight, "w: ") : [])),
    el("span", { class: "num", text: last.local_output || "" }),
    el("span", { class: "traffic" }, el("span", { class: "bar" }, el("i", { style: `${share(acts)};background:var(--activation)` }), el("i", { style: `${share(grads)};background:var(--gradient)` })), el("span", { class: "num", style: "font-size:12px", text: sent ? bytesText(sent) : "" })));
  for (const type of ["pointermove", "pointerdown"]) node.addEventListener(type, (e) => show(e.clientX, e.clientY));
  node.addEventListener("pointerleave", () => tip.hide());
  node.addEventListener("focus", () => { if (!node.matches(":focus-visible")) return; const area = node.getBoundingClientRect(); show(area.left + area.width / 3, area.top + area.height / 2); });
  node.addEventListener("blur", () => tip.hide());
  return node;
}

// The lines: down the spine from row to row, and around it where a row reads an earlier one.
function drawFlow(inner, rows, { skips, gap, spine }) {
  inner.querySelector("svg")?.remove();
  const nodes = inner.querySelectorAll(".layer:not(.headrow)"), y = (i) => nodes[i].offsetTop + nodes[i].offsetHeight / 2;
  const svg = svgEl("svg", { width: spine + 18, height: inner.offsetHeight, "aria-hidden": "true", "data-points": rows.length });
  for (const row of rows) for (const f of row.from) if (row.index - f.index === 1) svg.append(svgEl("line", { x1: spine, x2: spine, y1: y(f.index), y2: y(row.index), stroke: "var(--faint)", "stroke-width": 2 }));
  for (const s of skips) {
    const x = spine - 10 - s.column * gap, a = y(s.from), b = y(s.to), r = Math.min(9, spine - x);
    svg.append(svgEl("path", { d: `M${spine} ${a} Q${x} ${a} ${x} ${a + r} L${x} ${b - r} Q${x} ${b} ${spine} ${b}`, fill: "none", stroke: "var(--faint)", "stroke-width": 1.6, "stroke-opacity": 0.75 }));
  }
  rows.forEach((row) => { const out = row.layers[row.layers.length - 1].output || ""; svg.append(svgEl("circle", { cx: spine, cy: y(row.index), r: row.layers[0].weight ? 6 : 4.5, fill: `var(--${placementColour(out)})`, stroke: "var(--card)", "stroke-width": 2 })); });
  inner.append(svg);
}

// A grid of ranks as a mesh: the last axis runs to the right, the one before it down.
function gridBoxes(grids) {
  return el("div", { class: "grids", "data-chart": "grids" }, ...grids.map((grid) => {
    const wide = grid.axes.length ? grid.axes[grid.axes.length - 1].size : 1, columns = Math.min(wide, 16), shown = grid.ranks.slice(0, columns * 4), more = grid.size - shown.length;
    return el("div", { class: "gridbox" }, el("div", {}, grid.axes.length ? grid.axes.map((a) => `${a.name} ${a.size}`).join(" × ") : "one rank", ` · ${countText(grid.size)} rank${grid.size === 1 ? "" : "s"}`),
      el("div", { class: "mesh", style: `grid-template-columns:repeat(${Math.max(1, columns)},auto)`, role: "img", "aria-label": `a mesh of ${grid.size} ranks` }, ...shown.map((r) => el("i", { text: r }))), more > 0 ? el("div", { text: `and ${countText(more)} more` }) : null);
  }));
}
