// The data of the page, elements made from it, and numbers in words. Text from runs only ever becomes a text node.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== false));
  return element;
}

// make("p", {class: "x"}, "text", element): an HTML element; drawn(...): the same in SVG.
const make = (tag, attributes = {}, ...children) => put(document.createElement(tag), attributes, children);
const drawn = (tag, attributes = {}, ...children) => put(document.createElementNS(SVG, tag), attributes, children);

// Text of a run, on a line of its own direction.
const quote = (text, attributes = {}) => make("bdi", { class: "quote", dir: "auto", ...attributes }, text);

// A risk in two digits, near 1 in up to four; in more, as many as it needs, where it would not be told from a
// threshold; a threshold in as many as all risks need.
const bare = (text) => (Number(text) === 1 ? "1.0" : text.replace(/^0/, ""));
const SAME = 1.5e-6; // risks are the same that six digits do not tell apart
const short = (value) => [2, 3, 4].map((digits) => value.toFixed(digits)).find((text) => text < "1") ?? "1";
const risk = (value) => {
  if (value === null) return "–";
  const thresholds = [data.watch, data.alarm].filter((threshold) => threshold !== null);
  const near = thresholds.some((threshold) => short(threshold) === short(value));
  const gap = Math.min(...thresholds.map((threshold) => Math.abs(threshold - value)));
  const digits = gap <= SAME ? data.digits : [4, 5].find((some) => gap > 10 ** -some) ?? 6;
  const text = near ? value.toFixed(digits).replace(/(\.\d\d\d*?)0+$/, "$1") : short(value);
  return bare(text);
};
// A risk that is said in more digits than others, with why.
function riskWithWhy(value) {
  const text = risk(value);
  if (value === null || text === bare(short(value))) return text;
  const all = [data.watch, data.alarm].filter((threshold) => threshold !== null);
  const nearest = all.reduce((a, b) => (Math.abs(b - value) < Math.abs(a - value) ? b : a));
  const why = Math.abs(nearest - value) <= SAME
    ? `${text} is a threshold: in two digits it would not be told from the risks beside it.`
    : `In two digits ${text} would look like the threshold, ${risk(nearest)}.`;
  return make("span", { title: why }, text);
}
// The threshold that a risk is equal to, and so not above; "" where there is none.
const notAbove = (value, says) => {
  const [found] = [["ALARM", data.alarm], ["WATCH", data.watch]].filter(([name, threshold]) => threshold !== null
    && says !== "ALARM" && says !== name && risk(threshold) === risk(value));
  return found ? `the threshold of ${found[0]} itself, not above it` : "";
};
const range = ([low, high]) => `${risk(low)}–${risk(high)}`;
const interval = (ends) => ends.map((end) => (end === null ? "–" : bare(short(end)))).join("–");
const share = (value) => {
  if (value === null) return "–";
  if (value > 0 && value < 0.001) return "<0.1 %";
  if (value < 1 && value > 0.999) return ">99.9 %";
  return `${(100 * value).toFixed((value >= 0.1 && value < 0.995) || value === 0 || value === 1 ? 0 : 1)} %`;
};
const signed = (value) => {
  if (value === null) return "–";
  const size = risk(Math.abs(value));
  return Number(size) === 0 ? "±.00" : (value > 0 ? "+" : "−") + size;
};
const number = (value) => value.toLocaleString("en-US");
const count = (value, one) => `${number(value)} ${value === 1 ? one : one + "s"}`;
const gloss = (symbol) => data.symbols[symbol].gloss || `symbol ${symbol}`;

// A word of the text that does something; a link, for a button cannot be broken between lines.
const word = (content, action) =>
  make("a", {
    href: "#",
    onclick: (event) => {
      event.preventDefault();
      action();
    },
  }, content);

// A table: heads are texts or elements, rows are elements.
const table = (heads, rows) =>
  make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows));

const chip = (text, kind = text) => make("span", { class: `chip ${kind}` }, text);
const levelSaid = (says) => (says === "OK" ? "no alarm" : says);
const levelChip = (says) => chip(levelSaid(says), ["OK", "WATCH", "ALARM", "UNKNOWN"].includes(says) ? says : "");

// A share as a bar from 0 to 1.
const meter = (value) =>
  drawn(
    "svg",
    { class: "meter", viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { class: "rail", width: 100, height: 4 }),
    drawn("rect", { class: "value", width: (100 * (value ?? 0)).toFixed(1), height: 4 }),
  );

// A line of a list: what, its share of all, and that as a bar.
const shareLine = (what, part, before = "") =>
  make("div", { class: "share" }, make("span", {}, what), before + share(part), meter(part));

const example = (text) => make("div", { class: "example" }, quote(text));

// Columns of the clock from one to another in words, as "steps 1–9"; they begin at the earliest step or later.
function spanText(from, to, earliest = 1) {
  const first = Math.max(from ? data.clock[from - 1] : 1, earliest);
  const next = data.clock[to];
  if (next === undefined) return first > 1 ? `step ${first} and later` : "all steps";
  return next - 1 === first ? `step ${first}` : `steps ${first}–${next - 1}`;
}
const spans = [1, ...data.clock].map((first, at) => spanText(at, at));

// Which column of the clock a step (from 1) is in.
const columnOf = (step) => data.clock.filter((first) => first <= step).length;

