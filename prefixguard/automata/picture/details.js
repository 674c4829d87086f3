// What is known of a state, a level of risk or a connection, in the card beside the graph.

const rail = (value) => (4 + 192 * value).toFixed(1);

// A risk with its interval on a rail from 0 to 1, and the marks of watch and alarm.
function gauge(value, ends) {
  const marks = [data.watch, data.alarm].filter((mark) => mark !== null);
  return drawn("svg", { class: "gauge", viewBox: "0 0 200 22", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { class: "rail", x: 4, y: 9, width: 192, height: 4 }),
    drawn("rect", { class: "span", x: rail(ends[0]), y: 6, width: (192 * (ends[1] - ends[0])).toFixed(1), height: 10 }),
    marks.map((mark) => drawn("line", { class: "mark", x1: rail(mark), x2: rail(mark), y1: 1, y2: 21 })),
    drawn("rect", { class: "point", x: (Number(rail(value)) - 1.5).toFixed(1), y: 3, width: 3, height: 16 }));
}

const heading = (text) => make("h3", {}, text);
const toState = (state, { choose }) =>
  make("button", { type: "button", class: "plain", onclick: () => choose("states", `s${state}`) }, `state ${state}`);
const toSymbol = (symbol, { search }) =>
  make("button", { type: "button", class: "plain", onclick: () => search(symbol) }, quote(gloss(symbol)));

// Symbols with counts, as a list with bars.
function symbolList(symbols, total, links, most = 12) {
  const rows = symbols.slice(0, most).map(([symbol, times]) =>
    make("div", { class: "share" }, toSymbol(symbol, links), `${number(times)} · ${share(times / Math.max(total, 1))}`, meter(times / Math.max(total, 1))));
  const more = symbols.length - most;
  return [...rows, more > 0 && make("p", {}, `and ${more} more`)];
}

function evidenceText(state) {
  const own = `${count(state.steps, "held-out step")} of ${count(state.runs, "run")}`;
  if (state.standIn !== null) return `Its own evidence is thin (${own}), so its risk is that of `;
  if (state.thin) return `Thin evidence: calibrated on ${own}, fewer than ${data.thinRuns} runs. Take the interval seriously.`;
  return `Calibrated on ${own}.`;
}

function clockTable(state) {
  if (state.columns.length < 2) return null;
  const rows = state.columns.map((column, at) =>
    make("tr", {}, make("td", {}, spans[at]),
      make("td", { class: "number" }, risk(column.outcome), make("small", {}, range(column.interval))),
      make("td", { class: "number" }, risk(column.imminent)),
      make("td", { class: "number" }, `${number(column.steps)} / ${number(column.runs)}`)));
  return [heading("By the clock"),
    make("table", {}, make("thead", {}, make("tr", {}, ...["when", "outcome", "imminent", "steps / runs"].map((text, at) => make("th", { class: at ? "number" : "" }, text)))),
      make("tbody", {}, rows))];
}

// Where a node leads and from where it is reached.
function ways(of, key, links) {
  const edges = [...of.edges.values()];
  const list = (title, chosen, end) => {
    const total = chosen.reduce((sum, edge) => sum + edge.count, 0);
    if (!chosen.length) return null;
    const row = (edge) =>
      make("div", { class: "share" },
        make("span", {},
          make("button", { type: "button", class: "plain", onclick: () => links.choose(of.name, edge.key) }, edge[end] === key ? "itself" : nodeName(of, edge[end])),
          " by ", quote(gloss(edge.symbols[0][0])), edge.symbols.length > 1 ? ` and ${edge.symbols.length - 1} more` : ""),
        share(edge.count / Math.max(total, 1)), meter(edge.count / Math.max(total, 1)));
    return [heading(title), chosen.slice(0, 8).map(row),
      chosen.length > 8 && make("details", {}, make("summary", {}, `and ${chosen.length - 8} more`), chosen.slice(8).map(row))];
  };
  return [
    list("Goes on to", edges.filter((edge) => edge.tail === key), "head"),
    list("Comes from", edges.filter((edge) => edge.head === key && edge.tail !== key), "tail"),
  ];
}

const bounds = (level) => `${level.says} ${range([level.low, level.high])}`;
function nodeName(of, key) {
  const node = of.nodes.get(key);
  return of.name === "levels" ? `level ${bounds(data.levels[node.level])}` : `state ${node.states[0]}`;
}

function stateDetails(number_, links) {
  const state = data.states[number_];
  return [
    make("p", {}, make("b", { class: "big" }, `State ${number_} `), levelChip(data.levels[state.level].says), " ",
      number_ === data.start && chip("start", ""), " ", state.thin && chip("thin evidence", "thin")),
    make("p", {}, make("b", {}, `Outcome risk ${risk(state.outcome)}`), `, interval ${range(state.interval)} (90 %); imminent risk ${risk(state.imminent)}`),
    gauge(state.outcome, state.interval),
    make("p", {}, evidenceText(state), state.standIn !== null && toState(state.standIn, links), state.standIn !== null && "."),
    make("p", {}, `${count(state.visits, "training step")} ended here, ${share(state.share)} of all.`),
    clockTable(state),
    state.examples.length > 0 && heading("Steps that ended here"),
    state.examples.map((text) => make("div", { class: "example" }, quote(text))),
    ways(sheets.states, `s${number_}`, links),
  ];
}

function levelDetails(key, links) {
  const node = sheets.levels.nodes.get(key);
  const states = [...node.states].sort((a, b) => data.states[b].visits - data.states[a].visits);
  return [
    make("p", {}, make("b", { class: "big" }, bounds(data.levels[node.level]))),
    make("p", {}, `${node.spoken}.`),
    heading("Its states, busiest first"),
    make("p", {}, states.slice(0, 40).map((state) => [toState(state, links), ` ${risk(data.states[state].outcome)}  `]),
      states.length > 40 && `and ${states.length - 40} more`),
    ways(sheets.levels, key, links),
  ];
}

function edgeDetails(of, key, links) {
  const edge = of.edges.get(key);
  const leaving = [...of.edges.values()].filter((other) => other.tail === edge.tail).reduce((sum, other) => sum + other.count, 0);
  const end = (node) => make("button", { type: "button", class: "plain", onclick: () => links.choose(of.name, node) }, nodeName(of, node));
  const top = edge.symbols[0][0];
  return [
    make("p", {}, make("b", {}, "From "), end(edge.tail), make("b", {}, " to "), end(edge.head)),
    make("p", {}, `Taken ${count(edge.count, "time")} in training: ${share(edge.count / Math.max(leaving, 1))} of the steps from there.`,
      edge.drawn ? "" : " Too rare to be in the drawing."),
    heading(edge.symbols.length === 1 ? "Its symbol" : `Its ${edge.symbols.length} symbols`),
    symbolList(edge.symbols, edge.count, links),
    heading("Steps like these"),
    data.symbols[top].examples.map((text) => make("div", { class: "example" }, quote(text))),
  ];
}

// Shows what a key of a picture stands for.
function showDetails(of, key, links) {
  const content = of.edges.has(key) ? edgeDetails(of, key, links)
      : of.name === "levels" ? levelDetails(key, links) : stateDetails(of.nodes.get(key).states[0], links);
  const box = byId("details");
  box.scrollTop = 0;
  box.replaceChildren(...content.flat(Infinity).filter((item) => item !== null && item !== false));
}

function caption(of, key) {
  let text = "";
  if (key !== null && of.edges.has(key)) {
    const edge = of.edges.get(key);
    const more = edge.symbols.length > 1 ? ` and ${edge.symbols.length - 1} more` : "";
    text = `${nodeName(of, edge.tail)} → ${nodeName(of, edge.head)}: ${gloss(edge.symbols[0][0])}${more}, ${count(edge.count, "time")}`;
  } else if (key !== null) {
    text = of.nodes.get(key).spoken;
  }
  byId("caption").textContent = text;
}

