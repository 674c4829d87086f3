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
  }
  const edges = new Map();
  for (const edge of scene.edges) {
    const key = `${edge.tail}-${edge.head}`;
    const element = edge.drawn ? svg.querySelector(`[id="${key}"]`) : null;
    edges.set(key, { ...edge, key, element });
    const line = element?.querySelector("path");
    if (line) element.append(drawn("path", { class: "hit", d: line.getAttribute("d") })); // thin lines are hard to point at
  }
  const ghosts = drawn("g", { class: "ghosts" });
  const inside = svg.querySelector(".graph");
  inside.append(ghosts);
  return { name, holder, svg, scene, nodes, nodeOf, edges, ghosts, inside, view: null, fit: null };
}

const canvas = byId("canvas");
const sheets = { states: readSheet("states"), levels: readSheet("levels") };
let sheet = sheets.states;

// Where one looks: the part of the picture that the canvas shows, as a view box.

function whole(of) {
  const box = of.svg.getBBox();
  const margin = 12;
  return { x: box.x - margin, y: box.y - margin, w: box.width + 2 * margin, h: box.height + 2 * margin };
}

function look(view) {
  sheet.view = view;
  sheet.svg.setAttribute("viewBox", [view.x, view.y, view.w, view.h].map((value) => value.toFixed(1)).join(" "));
  const scale = Math.min(canvas.clientWidth / view.w, canvas.clientHeight / view.h);
  sheet.holder.classList.toggle("far", scale < 0.68);
  canvas.classList.toggle("zoomed", view.w < 0.98 * sheet.fit.w);
}

function fit() {
  sheet.holder.classList.remove("far");
  sheet.fit = whole(sheet);
  look(sheet.fit);
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
  pan(rect.left + rect.width / 2 - (node.left + node.right) / 2, rect.top + rect.height / 2 - (node.top + node.bottom) / 2);
}

function showSheet(name) {
  if (!sheets[name]) return;
  sheet = sheets[name];
  for (const other of Object.values(sheets)) if (other) other.holder.hidden = other !== sheet;
  for (const button of byId("views").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.view === name));
  }
  if (!sheet.view) fit();
  else look(sheet.view);
}

// What stands out.

function mark(kind, elements) {
  for (const element of sheet.svg.querySelectorAll(`.${kind}`)) element.classList.remove(kind);
  for (const element of elements) element?.classList.add(kind);
}

function middle(key) {
  const element = sheet.nodes.get(key).element.querySelector("ellipse");
  return [Number(element.getAttribute("cx")), Number(element.getAttribute("cy"))];
}

// A connection that the picture leaves out, as a dashed arc between its nodes.
function ghost(tail, head, kind) {
  const [x0, y0] = middle(tail);
  const [x1, y1] = middle(head);
  const path = tail === head
    ? `M${x0 - 20} ${y0 - 30}C${x0 - 50} ${y0 - 110} ${x0 + 50} ${y0 - 110} ${x0 + 20} ${y0 - 30}`
    : `M${x0} ${y0}Q${(x0 + x1) / 2 - (y1 - y0) / 5} ${(y0 + y1) / 2 + (x1 - x0) / 5} ${x1} ${y1}`;
  sheet.ghosts.append(drawn("path", { class: `ghost ${kind}`, d: path }));
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

  canvas.addEventListener("pointerover", (event) => event.pointerType === "mouse" && !pointers.size && hover(target(event)));
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

