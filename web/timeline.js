// The timeline of a step: a lane for each queue of each rank, measured and predicted one above the other on one time axis. Drawn on canvas, because there
// may be tens of thousands of events; what is narrower than a pixel is merged.

const LANE = 15, RANK_GAP = 7, AXIS = 24;
const queueColours = { compute: null, activation: "activation", gradient: "gradient", late: "gradient", host: "host" };
const phaseColours = { forward: "forward", backward: "backward", update: "update" };

function timelineCard(timeline) {
  const span = Math.max(...timeline.tracks.map((t) => t.span_us));
  const view = { from: 0, to: span };
  const card = el("div", { class: "card full", "data-chart": "timeline" }), panels = [];
  const zoom = (factor, at = (view.from + view.to) / 2) => {
    const width = Math.max(span / 20000, Math.min(span, (view.to - view.from) * factor)), share = (at - view.from) / (view.to - view.from);
    view.from = Math.max(0, Math.min(span - width, at - share * width));
    view.to = view.from + width;
    drawAll();
  };
  const pan = (by) => { const width = view.to - view.from; view.from = Math.max(0, Math.min(span - width, view.from + by)); view.to = view.from + width; drawAll(); };
  const fit = () => { view.from = 0; view.to = span; drawAll(); };
  const drawAll = () => { for (const p of panels) p.draw(); };
  const button = (text, label, act) => el("button", { type: "button", text, "aria-label": label, title: label, on: { click: act } });
  card.append(el("div", { class: "head" }, el("h3", { text: "Timeline" }), el("div", { class: "grow" }), legend(usedColours(timeline)),
    el("div", { class: "buttons" }, button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)), button("Fit", "Show the whole step", fit))));
  for (const track of timeline.tracks) {
    const panel = trackPanel(timeline, track, view, { zoom, pan, fit, titled: timeline.tracks.length > 1 });
    panels.push(panel);
    card.append(panel.box);
  }
  card.append(el("p", { class: "lead", style: "margin:8px 0 0", text: "Drag to move; Ctrl and the wheel, two fingers, or the keys + − ← → 0 to zoom and move." + (timeline.remark ? " " + timeline.remark : "") }));
  return card;
}

const colourOf = (timeline, e) => queueColours[timeline.queues[e[1]]] || phaseColours[timeline.phases[e[2]]] || "host";
const usedColours = (timeline) => {
  const names = { forward: "forward", backward: "backward", update: "update", activation: "activation traffic", gradient: "gradient traffic", host: "host" }, used = new Set();
  for (const track of timeline.tracks) for (const e of track.events) used.add(colourOf(timeline, e));
  return Object.keys(names).filter((c) => used.has(c)).map((c) => [names[c], c]);
};

// Which lanes a track has, from top to bottom, with their events by time.
const lanesOf = (timeline, track) => {
  const found = new Map();
  for (const e of track.events) { const key = e[0] * 16 + e[1]; if (!found.has(key)) found.set(key, []); found.get(key).push(e); }
  let y = AXIS, last = -1;
  return [...found.keys()].sort((a, b) => a - b).map((key) => {
    const rank = key >> 4, queue = key & 15, first = rank !== last;
    if (first && last >= 0) y += RANK_GAP;
    last = rank;
    const lane = { rank, queue, first, y, events: found.get(key).sort((a, b) => a[5] - b[5]) };
    y += LANE;
    return lane;
  });
};

function trackPanel(timeline, track, view, act) {
  const lanes = lanesOf(timeline, track), height = lanes.length ? lanes[lanes.length - 1].y + LANE + 4 : AXIS;
  const canvas = el("canvas", { tabindex: "0", role: "img", style: `height:${height}px`, "aria-label": `${track.name}: ${track.events.length} events of ${track.ranks.length} ranks in ${microsText(track.span_us)}` });
  const box = el("div", {}, act.titled ? el("p", { style: "margin:8px 0 2px;font-weight:600;font-size:13.5px" }, el("span", { text: track.name }), el("span", { style: "color:var(--soft);font-weight:450", text: "  " + microsText(track.span_us, 4) })) : null, canvas);
  const frame = () => { const width = canvas.clientWidth; return { left: width < 560 ? 62 : 128, width }; };
  const timeAt = (px) => { const { left, width } = frame(); return view.from + (px - left) / (width - left - 8) * (view.to - view.from); };

  const draw = () => {
    const { left, width } = frame(), dpr = devicePixelRatio || 1;
    if (!width) return;
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round(height * dpr);
    const g = canvas.getContext("2d"), x = (t) => left + (t - view.from) / (view.to - view.from) * (width - left - 8);
    g.scale(dpr, dpr);
    g.clearRect(0, 0, width, height);
    const font = getComputedStyle(document.body).fontFamily, palette = {};
    for (const name of ["forward", "backward", "update", "activation", "gradient", "host", "grid", "soft", "faint", "text", "line"]) palette[name] = colour(name);
    g.font = `12px ${font}`;
    g.textAlign = "center";
    for (const t of linearTicks(view.from, view.to, Math.max(2, Math.floor((width - left) / 100)))) {
      g.fillStyle = palette.grid;
      g.fillRect(x(t), AXIS - 4, 1, height - AXIS);
      g.fillStyle = palette.soft;
      g.fillText(microsText(t, view.to - view.from < span(track) / 50 ? 5 : 3), Math.min(x(t), width - 24), 13);
    }
    let drawn = 0;
    for (const lane of lanes) {
      laneLabel(g, lane, left, width, palette);
      drawn += laneEvents(g, lane, x, { left, right: width - 8 }, palette);
    }
    canvas.dataset.points = drawn;
    canvas.dataset.view = `${view.from.toFixed(3)} ${view.to.toFixed(3)}`;
  };
  const laneLabel = (g, lane, left, width, palette) => {
    g.textAlign = "left";
    if (lane.first) {
      g.fillStyle = palette.line;
      if (lane.y > AXIS) g.fillRect(0, lane.y - RANK_GAP / 2, width, 1);
      g.fillStyle = palette.text;
      g.font = g.font.replace(/^\S+ /, "600 ").replace("600 ", "600 12px ").replace("12px 12px", "12px");
      g.fillText(track.ranks[lane.rank].label, 0, lane.y + 11);
      g.font = g.font.replace("600 ", "");
    }
    if (left > 100) { g.textAlign = "right"; g.fillStyle = palette.faint; g.font = g.font.replace("12px", "11px"); g.fillText(timeline.queues[lane.queue], left - 8, lane.y + 11); g.font = g.font.replace("11px", "12px"); }
  };
  const laneEvents = (g, lane, x, frameX, palette) => {
    let drawn = 0, covered = -1;
    g.textAlign = "left";
    for (const e of lane.events) {
      if (e[5] + e[6] < view.from || e[5] > view.to) continue;
      const from = Math.max(frameX.left, x(e[5])), to = Math.min(frameX.right, Math.max(x(e[5] + e[6]), from + 0.6));
      drawn++;
      if (to < covered + 0.4) continue;
      covered = to;
      g.fillStyle = palette[colourOf(timeline, e)];
      g.fillRect(from, lane.y + 1, to - from - (to - from > 3 ? 0.8 : 0), LANE - 2);
      const text = timeline.layers[e[3]] || timeline.whats[e[4]];
      if (to - from > text.length * 6.4 + 8) { g.fillStyle = "#fff"; g.font = g.font.replace("12px", "11px"); g.fillText(text, from + 4, lane.y + 11); g.font = g.font.replace("11px", "12px"); }
    }
    return drawn;
  };

  const eventAt = (px, py) => {
    const lane = lanes.find((l) => py >= l.y && py < l.y + LANE), t = timeAt(px), slack = (timeAt(px + 2) - t);
    if (!lane || px < frame().left) return null;
    let best = null, distance = slack;
    for (const e of lane.events) { const d = t < e[5] ? e[5] - t : t > e[5] + e[6] ? t - e[5] - e[6] : 0; if (d <= distance) { best = e; distance = d; if (d === 0) break; } }
    return best;
  };
  const tell = (e, x, y) => {
    const rows = [[colourOf(timeline, e), timeline.phases[e[2]] || timeline.queues[e[1]], timeline.queues[e[1]]], [null, "takes", microsText(e[6], 4)], [null, "begins at", microsText(e[5], 5)]];
    if (e[7] > 0) rows.push([null, "work", countText(e[7]) + "FLOP" + (e[6] > 0 ? `, ${countText(e[7] / e[6] * 1e6)}FLOP/s` : "")]);
    if (e[9] > 0) rows.push([null, "sent", bytesText(e[9]) + (e[6] > 0 ? `, ${bytesText(e[9] / e[6] * 1e6)}/s` : "")]);
    else if (e[8] > 0) rows.push([null, "moves", bytesText(e[8])]);
    tip.show(x, y, timeline.layers[e[3]] || timeline.whats[e[4]], rows, `${timeline.whats[e[4]]} · ${track.ranks[e[0]].label}${track.ranks[e[0]].count > 1 ? `, stands for ${countText(track.ranks[e[0]].count)} ranks` : ""}`);
  };

  const fingers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (e) => { moved = 0; fingers.set(e.pointerId, e.clientX); canvas.setPointerCapture(e.pointerId); });
  const release = (e) => fingers.delete(e.pointerId);
  canvas.addEventListener("pointerup", (e) => {
    release(e);
    const area = canvas.getBoundingClientRect(), hit = moved < 5 ? eventAt(e.clientX - area.left, e.clientY - area.top) : null;
    if (hit) tell(hit, e.clientX, e.clientY);
  });
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointermove", (e) => {
    const area = canvas.getBoundingClientRect();
    if (fingers.has(e.pointerId)) {
      const before = fingers.get(e.pointerId);
      fingers.set(e.pointerId, e.clientX);
      moved += Math.abs(e.clientX - before);
      if (fingers.size === 1) act.pan(timeAt(0) - timeAt(e.clientX - before));
      else if (fingers.size === 2) {
        const other = [...fingers].find(([id]) => id !== e.pointerId)[1], was = Math.abs(before - other), is = Math.abs(e.clientX - other);
        if (is > 8) act.zoom(was / is, timeAt((e.clientX + other) / 2 - area.left));
      }
      tip.hide();
      return;
    }
    const hit = eventAt(e.clientX - area.left, e.clientY - area.top);
    if (hit) tell(hit, e.clientX, e.clientY); else tip.hide();
  });
  canvas.addEventListener("pointerleave", () => tip.hide());
  canvas.addEventListener("dblclick", (e) => act.zoom(0.4, timeAt(e.clientX - canvas.getBoundingClientRect().left)));
  canvas.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    act.zoom(Math.exp(Math.max(-50, Math.min(50, e.deltaY)) * 0.01), timeAt(e.clientX - canvas.getBoundingClientRect().left));
  }, { passive: false });
  canvas.addEventListener("keydown", (e) => {
    const width = view.to - view.from, moves = { "+": () => act.zoom(0.6), "=": () => act.zoom(0.6), "-": () => act.zoom(1 / 0.6), ArrowLeft: () => act.pan(-width / 5), ArrowRight: () => act.pan(width / 5), 0: act.fit, Home: act.fit };
    if (!moves[e.key]) return;
    e.preventDefault();
    moves[e.key]();
  });
  drawInto(box, draw);
  return { box, draw };
}
const span = (track) => track.span_us;
