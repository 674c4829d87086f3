// The graph: which of its pictures is shown, where one looks at it, and what stands out in it.

// One picture (all states, or levels of risk) with the elements of its nodes and edges.
function readSheet(name) {
  const holder = document.querySelector(`.sheet[data-scene="${name}"]`);
  const svg = holder.querySelector("svg");
  const scene = data.scenes[name];
  if (!svg || !scene) return null;
  svg.removeAttribute("width");
  svg.removeAttribute("height");
  const nodes = new Map();
  const nodeOf = new Map();
  for (const node of scene.nodes) {
    const element = svg.querySelector(`[id="${node.key}"]`);
    nodes.set(node.key, { ...node, element });
    for (const state of node.states) nodeOf.set(state, node.key);
    element.querySelector("title")?.remove(); // the caption says it, without the wait
    // From afar, number and risk in two lines in place of all that is written.
    const [x, y] = ["cx", "cy"].map((at) => element.querySelector(".body").getAttribute(at));
    const [title, strong] = element.querySelectorAll("text:not(.word)");
    const lines = name === "states" ? [[title, "-0.1em"], [strong, "0.9em"]] : [[strong, "0.35em"]];
    element.insertBefore(drawn("text", { class: "afar", y, fill: strong.getAttribute("fill") }, lines.map(([text, dy]) => drawn("tspan", { x, dy }, text.textContent))),
      element.querySelector(".badge"));
  }
  const edges = new Map();
  for (const edge of scene.edges) {
    const key = `${edge.tail}-${edge.head}`;
    const element = edge.drawn ? svg.querySelector(`[id="${key}"]`) : null;
    edges.set(key, { ...edge, key, element });
    const line = element?.querySelector("path");
    // Thin lines are hard to point at: an unseen wide one lies over each.
    if (line) element.append(drawn("path", { class: "hit", d: line.getAttribute("d") }));
  }
  const ghosts = drawn("g", { class: "ghosts" });
  const inside = svg.querySelector(".graph");
  inside.insertBefore(ghosts, inside.querySelector(".node, .edge")); // under everything that is drawn
  return { name, holder, svg, scene, nodes, nodeOf, edges, ghosts, inside, view: null, fit: null };
}

const canvas = byId("canvas");
const sheets = { states: readSheet("states"), levels: readSheet("levels") };
let sheet = sheets.states;

// Where one looks: the part of the picture that the canvas shows, as a view box.

function whole(of) {
  const far = of.holder.classList.contains("far");
  of.holder.classList.remove("far"); // the same box from near and afar
  const box = of.inside.getBBox();
  const move = of.inside.transform.baseVal.consolidate()?.matrix ?? { e: 0, f: 0 };
  box.x += move.e;
  box.y += move.f;
  of.holder.classList.toggle("far", far);
  const margin = 12;
  const w = Math.max(box.width + 2 * margin, canvas.clientWidth / 1.3); // small pictures are not blown up
  return { x: box.x - (w - box.width) / 2, y: box.y - margin, w, h: box.height + 2 * margin };
}

const LEGIBLE = 8.5; // pixels of the smallest writing that can be read
const mostHeight = () => Math.max(0.62 * window.innerHeight, 300);
// From afar only numbers and risks are written, as large as their states allow: size in the picture at a scale.
const farSize = (scale, of) => Math.min(Math.max(10.5 / scale, 17), of.name === "states" ? 30 : 36);

// Whether they can be read in a picture, once it was fitted, where all of it is shown.
function legible(of) {
  const scale = Math.min(canvas.clientWidth / of.fit.w, mostHeight() / of.fit.h);
  return scale >= 0.6 || farSize(scale, of) * scale >= LEGIBLE;
}

function look(view) {
  sheet.view = view;
  sheet.svg.setAttribute("viewBox", [view.x, view.y, view.w, view.h].map((value) => value.toFixed(1)).join(" "));
  const scale = Math.min(canvas.clientWidth / view.w, canvas.clientHeight / view.h);
  sheet.holder.classList.toggle("far", scale < 0.6);
  sheet.holder.classList.toggle("unnamed", scale < LEGIBLE / 10); // names on lines are 10 high; the panels have them too
  sheet.holder.style.setProperty("--far", `${farSize(scale, sheet).toFixed(1)}px`);
  sheet.holder.style.setProperty("--badge", Math.min(Math.max(9 / (11 * scale), 1), 3.2).toFixed(2));
  sheet.holder.style.setProperty("--far-level", `${Math.min(Math.max(11 / scale, 14), 21).toFixed(1)}px`);
  canvas.classList.toggle("zoomed", view.w < 0.98 * sheet.fit.w);
}

// Shows the whole picture; the canvas becomes as high as the picture needs, within limits.
function fit() {
  sheet.fit = whole(sheet);
  const { w, h } = sheet.fit;
  canvas.style.height = `${Math.round(Math.min(Math.max((canvas.clientWidth * h) / w, 220), mostHeight()))}px`;
  look(sheet.fit);
}

const narrow = () => window.matchMedia("(max-width: 760px)").matches;

// The first view is the whole picture; on a phone, where that is too small, a part: the replay brings its state there.
function begin() {
  fit();
  const scale = Math.min(canvas.clientWidth / sheet.fit.w, canvas.clientHeight / sheet.fit.h);
  if (!narrow() || scale >= 0.6) return;
  canvas.style.height = `${Math.round(Math.min(mostHeight(), 340))}px`;
  zoom(0.9 / Math.min(canvas.clientWidth / sheet.fit.w, canvas.clientHeight / sheet.fit.h));
}

// Zooms by a factor around a point of the canvas (its middle where none is given).
function zoom(factor, at) {
  const { x, y, w, h } = sheet.view;
  const rect = canvas.getBoundingClientRect();
  const scale = Math.min(rect.width / w, rect.height / h);
  const px = at ? at.clientX - rect.left : rect.width / 2;
  const py = at ? at.clientY - rect.top : rect.height / 2;
  // The picture stands in the middle of the canvas with free room at two sides.
  const sx = x + (px - (rect.width - w * scale) / 2) / scale;
  const sy = y + (py - (rect.height - h * scale) / 2) / scale;
  const by = Math.min(Math.max(factor, w / (1.6 * sheet.fit.w)), (scale > 0 ? 6 : 1) / scale);
  // After zooming in, the whole canvas is used.
  const width = rect.width / (scale * by);
  const height = rect.height / (scale * by);
  look({ x: sx - px / (scale * by), y: sy - py / (scale * by), w: width, h: height });
}

function pan(dx, dy) {
  const { x, y, w, h } = sheet.view;
  const scale = Math.min(canvas.clientWidth / w, canvas.clientHeight / h);
  look({ x: x - dx / scale, y: y - dy / scale, w, h });
}

// Moves the view so that a node is in it, with some room around.
function bring(key) {
  const node = sheet.nodes.get(key)?.element.getBoundingClientRect();
  const rect = canvas.getBoundingClientRect();
  if (!node) return;
  const room = Math.min(60, rect.width / 6);
  const inside = node.left >= rect.left + room && node.right <= rect.right - room
    && node.top >= rect.top + room && node.bottom <= rect.bottom - room;
  if (inside || !canvas.classList.contains("zoomed")) return;
  const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
  const [[x, y], [toX, toY]] = [middle(node), middle(rect)];
  pan(toX - x, toY - y);
}

function showSheet(name) {
  if (!sheets[name]) return;
  sheet = sheets[name];
  for (const other of Object.values(sheets)) if (other) other.holder.hidden = other !== sheet;
  for (const button of byId("views").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.view === name));
  }
  if (!sheet.view) begin();
  else look(sheet.view);
}

// What stands out.

function mark(kind, elements) {
  for (const element of sheet.svg.querySelectorAll(`.${kind}`)) element.classList.remove(kind);
  for (const element of elements) element?.classList.add(kind);
}

// Middle and radii of a node.
function ellipseOf(key) {
  const element = sheet.nodes.get(key).element.querySelector("ellipse");
  return ["cx", "cy", "rx", "ry"].map((name) => Number(element.getAttribute(name)));
}

// A connection that the picture leaves out, as a dashed arc between its nodes.
function ghost(tail, head, kind) {
  const [x0, y0, rx, ry] = ellipseOf(tail);
  const [x1, y1, headRx, headRy] = ellipseOf(head);
  const control = [(x0 + x1) / 2 - (y1 - y0) / 5, (y0 + y1) / 2 + (x1 - x0) / 5];
  // Where the line from the control point to the middle meets the head's outline, and its direction there.
  const [dx, dy] = [control[0] - x1, control[1] - y1];
  const reach = 1 / Math.hypot(dx / headRx, dy / headRy);
  let tip = [x1 + dx * reach, y1 + dy * reach];
  let way = [-dx / Math.hypot(dx, dy), -dy / Math.hypot(dx, dy)];
  let path = `M${x0} ${y0}Q${control[0]} ${control[1]} ${tip[0]} ${tip[1]}`;
  if (tail === head) {
    tip = [x0 + 0.4 * rx, y0 - 0.92 * ry];
    way = [0, 1];
    const top = y0 - 2.4 * ry;
    path = `M${x0 - 0.4 * rx} ${tip[1]}C${x0 - 0.9 * rx} ${top} ${x0 + 0.9 * rx} ${top} ${tip[0]} ${tip[1]}`;
  }
  const corner = (side) => `${tip[0] - 13 * way[0] - side * way[1]},${tip[1] - 13 * way[1] + side * way[0]}`;
  sheet.ghosts.append(drawn("g", { class: `ghost ${kind}` }, drawn("path", { d: path }),
    drawn("polygon", { points: `${tip[0]},${tip[1]} ${corner(6)} ${corner(-6)}` })));
}

function forgetGhosts(kind) {
  for (const element of sheet.ghosts.querySelectorAll(`.${kind}`)) element.remove();
}

// Lets some nodes and edges stand out and all others fade; nothing given: nothing fades.
function light(nodeKeys, edgeKeys, chosen = []) {
  forgetGhosts("of-light");
  const edges = edgeKeys.map((key) => sheet.edges.get(key)).filter(Boolean);
  mark("on", [...nodeKeys.map((key) => sheet.nodes.get(key)?.element), ...edges.map((edge) => edge.element)]);
  mark("chosen", chosen.map((key) => sheet.nodes.get(key)?.element));
  sheet.holder.classList.toggle("lit", nodeKeys.length > 0 || edges.length > 0);
  for (const edge of edges.filter((edge) => !edge.element).slice(0, 60)) ghost(edge.tail, edge.head, "of-light");
}

function watchGraph({ hover, choose }) {
  const target = (event) => event.target.closest?.(".node, .edge")?.id ?? null;
  const pointers = new Map();
  let moved = 0;

  canvas.addEventListener("pointerover", (event) => {
    if (event.pointerType === "mouse" && !pointers.size) hover(target(event));
  });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event);
    if (pointers.size === 1) moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX;
    const dy = event.clientY - before.clientY;
    if (pointers.size === 2) {
      const [other] = [...pointers.values()].filter((pointer) => pointer.pointerId !== event.pointerId);
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      zoom(apart(event) / Math.max(apart(before), 1), {
        clientX: (event.clientX + other.clientX) / 2,
        clientY: (event.clientY + other.clientY) / 2,
      });
    } else if (event.pointerType === "mouse" || canvas.classList.contains("zoomed")) {
      pan(dx, dy);
    }
    moved += Math.abs(dx) + Math.abs(dy);
    if (moved > 6) canvas.classList.add("dragging");
    pointers.set(event.pointerId, event);
  });
  const end = (event) => {
    pointers.delete(event.pointerId);
    canvas.classList.remove("dragging");
  };
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
  canvas.addEventListener("click", (event) => moved <= 6 && choose(target(event)));
  canvas.addEventListener("wheel", (event) => {
    // The wheel scrolls the page, as everywhere; with Ctrl, and as a pinch on a touchpad, it zooms.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 250), event);
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(1.7, event));
  byId("zoom-in").addEventListener("click", () => zoom(1.4));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
  byId("zoom-fit").addEventListener("click", fit);
  new ResizeObserver(() => {
    if (canvas.classList.contains("zoomed")) look(sheet.view);
    else fit();
  }).observe(canvas);
}

