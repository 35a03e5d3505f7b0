// Numbers as people read them, and the small helpers that every chart uses.

const numberText = (value, digits = 3) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3) return value.toExponential(Math.max(0, digits - 1)).replace("e-", "e−");
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return Number(value.toFixed(Math.min(decimals, 8))).toLocaleString("en-US", { maximumFractionDigits: 8 });
};

const scaled = (value, steps, digits) => {
  const size = Math.abs(value);
  let chosen = steps[0];
  for (const step of steps) if (size >= step[0] * 0.9995) chosen = step;
  return numberText(value / chosen[0], digits) + " " + chosen[1];
};
const bytesText = (value, digits = 3) => value === 0 ? "0" : scaled(value, [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"]], digits);
const microsText = (value, digits = 3) => value === 0 ? "0" : scaled(value, [[1e-3, "ns"], [1, "µs"], [1e3, "ms"], [1e6, "s"], [6e7, "min"]], digits);
const countText = (value, digits = 3) => Math.abs(value) < 1e4 ? numberText(value, digits) : scaled(value, [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"], [1e12, "T"], [1e15, "P"]], digits);
const percentText = (value, digits = 3) => numberText(100 * value, digits) + " %";
const signedPercent = (value) => (value > 0 ? "+" : value < 0 ? "−" : "") + numberText(Math.abs(100 * value), 2) + " %";

// How a quantity is written, by the unit that the data names.
const writers = { "": numberText, count: countText, bytes: bytesText, us: microsText, ms: (v, d) => microsText(v * 1e3, d), percent: percentText, joules: (v, d) => scaled(v, [[1e-3, "mJ"], [1, "J"], [1e3, "kJ"], [1e6, "MJ"]], d) };
const writerOf = (unit) => writers[unit] || ((v, d) => countText(v, d).trim() + " " + unit);

// Round values between low and high, about `count` of them, at steps of 1, 2, 2.5 or 5 (for bytes and times too: their prefixes are decimal).
const linearTicks = (low, high, count) => {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((s) => s * power >= raw * 0.999) * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
  return ticks;
};
const logTicks = (low, high, count) => {
  const decades = Math.log10(high / low);
  if (decades < 0.9) return linearTicks(low, high, count);
  const marks = decades > count ? [1] : decades > count / 2 ? [1, 3] : [1, 2, 5], every = Math.max(1, Math.round(decades / count));
  const ticks = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
    for (const m of marks) if (p % every === 0 && m * 10 ** p >= low * 0.999 && m * 10 ** p <= high * 1.001) ticks.push(m * 10 ** p);
  return ticks;
};

const SVG = "http://www.w3.org/2000/svg";
const fill = (node, attributes, children) => {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key === "on") for (const [type, handler] of Object.entries(value)) node.addEventListener(type, handler);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children || []) if (child) node.append(child);
  return node;
};
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svgEl = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// The one tooltip. `rows` are [colour or null, label, value].
const tip = {
  box: () => document.getElementById("tip"),
  show(x, y, title, rows, below) {
    const box = this.box();
    box.replaceChildren(el("b", { text: title }), el("table", {}, el("tbody", {}, ...rows.map(([c, label, value]) =>
      el("tr", {}, el("td", {}, c ? el("i", { style: `background:var(--${c})` }) : null, label), el("td", { text: value }))))));
    if (below) box.append(el("div", { class: "dim", text: below }));
    box.hidden = false;
    const w = box.offsetWidth, h = box.offsetHeight;
    box.style.left = Math.max(6, x + 16 + w > innerWidth - 6 ? x - 16 - w : x + 16) + "px";
    box.style.top = Math.max(6, Math.min(y - h / 2, innerHeight - h - 6)) + "px";
  },
  hide() { this.box().hidden = true; },
};
addEventListener("scroll", () => tip.hide(), { passive: true, capture: true });

// Everything drawn registers how to draw itself again: at another width, or in the other colours.
const redraws = new Map();
const observer = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const entry = redraws.get(target);
    if (entry && Math.abs(entry.width - contentRect.width) > 0.5) { entry.width = contentRect.width; entry.draw(); }
  }
});
const drawInto = (box, draw) => { redraws.set(box, { draw, width: -1 }); observer.observe(box); };
const forgetRemoved = () => { for (const box of [...redraws.keys()]) if (!box.isConnected) { observer.unobserve(box); redraws.delete(box); } };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const entry of redraws.values()) entry.draw(); });

const legend = (items) => el("div", { class: "legend" }, ...items.map(([name, c, style]) =>
  el("span", {}, el("i", { class: style || "", style: `background:var(--${c});color:var(--${c})` }), name)));

const dataTable = (columns, rows) => el("table", { class: "data" },
  el("thead", {}, el("tr", {}, ...columns.map((c) => el("th", { text: c.replace(/^</, ""), class: c[0] === "<" ? "left" : "", scope: "col" })))),
  el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => cell && cell.nodeType ? cell : el("td", { text: cell }))))));
// The numbers behind a chart, made when they are asked for.
const numbersBehind = (make) => {
  const box = el("details", {}, el("summary", { text: "Numbers" }));
  box.addEventListener("toggle", () => { if (box.open && box.children.length === 1) box.append(el("div", { class: "scroll", tabindex: "0" }, make())); });
  return box;
};
