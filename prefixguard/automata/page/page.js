// Puts the parts together: what is chosen, what is searched, keys, and the link to what is on the screen.

const place = { run: 0, step: 0 };
let kept = null; // [scene, key] of the node or edge that was clicked
let query = "";
let only = null; // the one symbol chosen among those found

function remember() {
  const parts = [];
  if (data.replays.length) parts.push(`run=${place.run}`, `step=${place.step}`);
  if (kept) parts.push(`at=${kept[1]}`);
  if (only !== null) parts.push(`symbol=${only}`);
  if (sheets.levels && sheet !== sheets.states) parts.push("view=levels");
  else if (sheets.levels && firstView() === "levels") parts.push("view=states");
  try {
    history.replaceState(null, "", `#${parts.join("&")}`);
  } catch {
    // Some viewers forbid it for files; the page works without.
  }
}

// The picture that a page opens with: levels where states are many, or too small to be read in this window.
function firstView() {
  return sheets.levels && (data.states.length > data.many || !legible(sheets.states)) ? "levels" : "states";
}

// What stands out: a hovered thing first, else the kept one, else what was searched for.
function refresh(hovered = null) {
  const key = hovered ?? (kept && kept[0] === sheet.name ? kept[1] : null);
  byId("release").hidden = kept === null;
  if (key !== null) {
    const edge = sheet.edges.get(key);
    if (edge) light([edge.tail, edge.head], [key], []);
    else {
      const around = [...sheet.edges.values()].filter((other) => other.tail === key || other.head === key);
      // Without a click only the connections that are drawn: the others would hide what one points at.
      const shown = around.filter((other) => other.element || hovered === null).map((other) => other.key);
      light([key, ...around.flatMap((other) => [other.tail, other.head])], shown, [key]);
    }
  } else {
    const found = only === null ? matching(query) : [only];
    const symbols = new Set(tooMany(found) ? [] : found);
    // One symbol is shown wherever it leads; of several, the connections that they mostly are.
    const least = symbols.size > 1 ? 0.5 : 0;
    const edges = [...sheet.edges.values()].filter((edge) => {
      const theirs = edge.symbols.filter(([symbol]) => symbols.has(symbol));
      const times = theirs.reduce((sum, [, often]) => sum + often, 0);
      return theirs.length > 0 && times >= least * edge.count;
    });
    const shown = edges.filter((edge) => edge.element || only !== null);
    light(shown.flatMap((edge) => [edge.tail, edge.head]), shown.map((edge) => edge.key));
  }
  caption(sheet, key);
  // Where nothing is pointed at, the card tells of the state in which the replay stands.
  const here = `s${replay.state() ?? data.start}`;
  const about = hovered !== null ? [sheet, hovered] : kept ? [sheets[kept[0]], kept[1]] : [sheets.states, here];
  byId("details-title").textContent = hovered === null && !kept ? "Where the replay stands" : "Details";
  showDetails(...about, links);
}

function choose(scene, key) {
  kept = key === null ? null : [scene, key];
  if (key !== null && sheet.name !== scene) view(scene);
  if (key !== null) bring(key);
  refresh();
  remember();
}

// Searches for words, or for one symbol by its number.
function search(what) {
  if (typeof what === "number") {
    const again = only === what;
    if (!matching(query).includes(what)) {
      query = gloss(what);
      byId("search").value = query;
    }
    only = again ? null : what;
  } else {
    query = what.trim();
    only = null;
  }
  kept = null;
  const found = matching(query);
  if (only !== null && !found.includes(only)) found.unshift(only);
  showFound(found, query, only, { ...links, search });
  refresh();
  remember();
}

const links = {
  choose,
  open(run, step) {
    replay.open(run, step);
    byId("replay-title").scrollIntoView({ block: "nearest" });
  },
  search(symbol) {
    only = null;
    search(symbol);
    byId("graph-title").scrollIntoView({ block: "nearest" });
  },
};

function view(name) {
  light([], []);
  showSheet(name);
  replay.refresh();
  refresh();
}

let replay = { state: () => null, refresh() {} }; // until the first run is open
replay = makeReplay((run, step) => {
  Object.assign(place, { run, step });
  if (!kept) refresh();
  remember();
}, links);

function showKey() {
  const swatch = (level) => {
    const box = make("span", {}, bounds(level));
    box.style.background = level.colour;
    box.style.color = level.ink;
    return box;
  };
  byId("key").replaceChildren(
    make(
      "div",
      { class: "scale", role: "img", "aria-label": "Colours of the levels of outcome risk" },
      data.levels.filter((level) => level.used).map(swatch),
    ),
    make(
      "details",
      {},
      make("summary", {}, "How to read this picture"),
      ...data.scenes[sheet.name].legend.map((sentence) => make("p", {}, sentence)),
      make("p", {}, "Point at a state or a connection to see what is known of it, click to keep it. Drag to move; "
        + "pinch, or hold Ctrl and turn the wheel, to zoom: names of symbols appear as you come nearer."),
    ),
  );
}

// On a phone what is longer than the screen is folded: a table behind a line that says what it is, an item of a list
// behind its first line.
function foldLong() {
  byId("symbols").open = false;
  const long = [...document.querySelectorAll("header .box, header ul")]
    .filter((one) => !one.closest("details") && one.offsetHeight > window.innerHeight);
  for (const box of long.filter((one) => one.matches(".box"))) {
    const heads = [...box.querySelectorAll("thead th")].map((head) => head.textContent);
    const rows = box.querySelectorAll("tbody tr").length;
    const folded = make("details", {}, make("summary", {}, `Table, ${count(rows, "row")}: ${heads.join(", ")}`));
    box.replaceWith(folded);
    folded.append(box);
  }
  for (const item of long.flatMap((one) => [...one.querySelectorAll("li")])) {
    const [first, ...rest] = item.children;
    if (rest.length) item.replaceChildren(make("details", {}, make("summary", {}, first), rest));
  }
}

// Reads the link: #run=0&step=3&at=s5&symbol=2&view=states
function openLink() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const given = (name) => (/^\d{1,6}$/.test(wanted.get(name) ?? "") ? Number(wanted.get(name)) : null);
  const scene = wanted.get("view") in sheets && sheets[wanted.get("view")] ? wanted.get("view") : firstView();
  showSheet(scene);
  showKey();
  const at = wanted.get("at");
  const symbol = given("symbol");
  replay.open(given("run") ?? place.run, given("step") ?? (wanted.has("run") ? 0 : place.step));
  only = null;
  if (symbol !== null && symbol < data.symbols.length) search(symbol);
  if (at !== null && (sheet.nodes.has(at) || sheet.edges.has(at))) choose(sheet.name, at);
  else refresh();
}

function graphKey(event) {
  const order = [...sheet.nodes.keys()]; // lowest risk first
  const at = kept && kept[0] === sheet.name ? order.indexOf(kept[1]) : -1;
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  if (event.key in steps) {
    const from = at < 0 ? order.indexOf(sheet.nodeOf.get(data.start)) - steps[event.key] : at;
    choose(sheet.name, order[(from + steps[event.key] + order.length) % order.length]);
  } else if (event.key === "+" || event.key === "=") zoom(1.4);
  else if (event.key === "-") zoom(1 / 1.4);
  else if (event.key === "0") fit();
  else return;
  event.preventDefault();
}

// Enter in the search opens the first hit; arrows go from hit to hit.
function searchKey(event) {
  const hits = [...byId("found").querySelectorAll("button")];
  const at = hits.indexOf(event.target);
  const forth = event.key === "ArrowDown" || (event.key === "ArrowRight" && at >= 0);
  const back = at >= 0 && (event.key === "ArrowUp" || event.key === "ArrowLeft");
  if (event.key === "Enter" && at < 0) hits[0]?.click();
  else if (forth) hits[at + 1]?.focus();
  else if (back) (hits[at - 1] ?? byId("search")).focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    byId("search").value = "";
    search("");
    choose(sheet.name, null);
  } else if (event.target === canvas) graphKey(event);
  else if (!event.target.closest("input, select, textarea, summary, .said")) {
    if (event.key === "ArrowRight") replay.next();
    else if (event.key === "ArrowLeft") replay.back();
  }
});

byId("views").hidden = !sheets.levels;
for (const button of byId("views").querySelectorAll("button")) {
  button.addEventListener("click", () => {
    kept = null;
    view(button.dataset.view);
    showKey();
    remember();
  });
}
byId("search").addEventListener("input", () => search(byId("search").value));
for (const id of ["search", "found"]) byId(id).addEventListener("keydown", searchKey);
byId("release").addEventListener("click", () => choose(sheet.name, null));
watchGraph({ hover: refresh, choose: (key) => choose(sheet.name, key) });
window.addEventListener("hashchange", openLink);
// What was folded on the screen is open on paper, in browsers too whose style sheet cannot open it.
let unfolded = [];
window.addEventListener("beforeprint", () => {
  byId("paper").replaceChildren(make("h2", {}, "States"),
    ...data.states.map((state, at) => make("article", {}, stateDetails(at, links))));
  unfolded = [...document.querySelectorAll("details:not([open])")];
  for (const folded of unfolded) folded.open = true;
  fit();
});
window.addEventListener("afterprint", () => {
  byId("paper").replaceChildren();
  for (const folded of unfolded) folded.open = false;
});
showGlossary(links);
linkTables(links);
if (narrow()) foldLong();
showSheet("states"); // its size decides which picture the page opens with
openLink();
