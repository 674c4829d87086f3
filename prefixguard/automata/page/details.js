// What is known of a state, a level of risk or a connection, in the card beside the graph.

const LISTED = 8; // ways that are shown before "and more"

// A risk with its interval on a rail from 0 to 1, and the thresholds of watch and alarm.
function gauge(value, [low, high]) {
  const x = (part) => (4 + 192 * part).toFixed(1);
  const thresholds = [data.watch, data.alarm].filter((threshold) => threshold !== null);
  return drawn(
    "svg",
    { class: "gauge", viewBox: "0 0 200 22", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("rect", { class: "rail", x: 4, y: 9, width: 192, height: 4 }),
    drawn("rect", { class: "span", x: x(low), y: 6, width: (192 * (high - low)).toFixed(1), height: 10 }),
    thresholds.map((threshold) => drawn("line", { class: "threshold", x1: x(threshold), x2: x(threshold), y1: 1, y2: 21 })),
    drawn("rect", { class: "point", x: (192 * value + 2.5).toFixed(1), y: 3, width: 3, height: 16 }),
  );
}

const heading = (text) => make("h3", {}, text);
const toState = (state, { choose }) => word(`state ${state}`, () => choose("states", `s${state}`));
const toSymbol = (symbol, { search }) => word(quote(gloss(symbol)), () => search(symbol));
// A level in words: its risks are above the lower end.
const bounds = ({ says, low, high }) => levelSaid(says) + (low > 0 ? ` above ${risk(low)}` : "")
  + (high < 1 ? ` ${low > 0 ? "to" : "up to"} ${risk(high)}` : "");
const andMore = (symbols) => (symbols.length > 1 ? ` and ${symbols.length - 1} more` : "");
const total = (edges) => Math.max(edges.reduce((sum, edge) => sum + edge.count, 0), 1);

function nodeName(of, key) {
  const node = of.nodes.get(key);
  return of.name === "levels" ? `level ${bounds(data.levels[node.level])}` : `state ${node.states[0]}`;
}

// Why the risk of spans is a guess; null where held-out runs were there.
function guess(columns) {
  if (columns.some((column) => column.known)) return null;
  const why = columns.some((column) => column.met) ? "no held-out run was here: from training runs alone"
    : "no run was here: taken from this state at other steps, and from other states at these";
  return `${why}, it would say ${risk(columns[0].outcome)}`;
}

function evidence(state, links) {
  const least = state.columns.length > 1 && state.runs > 0 ? "at least " : "";
  const own = `${count(state.steps, "held-out step")} of ${least}${count(state.runs, "run")}`;
  if (state.stand_in !== null) {
    const text = `Its own evidence is thin (${own}), so its risk is that of `;
    return make("p", {}, text, toState(state.stand_in, links), ".");
  }
  const few = `Thin evidence: calibrated on ${own}, fewer than ${data.thin_runs} runs`
    + `${state.columns.length > 1 ? " in every range of steps" : ""}. Take the interval seriously.`;
  return make("p", {}, state.thin ? few : `Calibrated on ${own}.`);
}

// Spans of the clock of one risk are one row.
function byTheClock(state) {
  if (state.columns.length < 2) return null;
  const cell = (...content) => make("td", { class: "number" }, ...content);
  const pooled = ({ pool }) => state.columns.filter((column) => column.pool === pool);
  // No step before the earliest at which any run was there is told of.
  const met = (first) => !(data.clock[first.pool + pooled(first).length - 1] <= state.earliest);
  const rows = state.columns.filter((column, at) => column.pool === at && met(column)).map((first) => {
    const columns = pooled(first);
    const values = (name) => columns.map((column) => column[name]);
    const [low, high] = [Math.min(...values("imminent")), Math.max(...values("imminent"))];
    const steps = values("steps").reduce((sum, one) => sum + one);
    const runs = Math.max(...values("runs"));
    const thin = !guess(columns) && runs < data.thin_runs && chip("thin", "thin");
    const { says } = data.levels[first.level];
    const when = make("td", {}, spanText(first.pool, first.pool + columns.length - 1, state.earliest), " ",
      levelChip(says), " ", thin, make("div", { class: "measured" }, notAbove(first.outcome, says)));
    if (guess(columns)) return make("tr", {}, when, make("td", { colspan: 3 }, guess(columns)));
    return make(
      "tr",
      {},
      when,
      cell(riskWithWhy(first.outcome), make("small", {}, interval(first.interval))),
      cell(risk(low) === risk(high) ? risk(low) : range([low, high])),
      cell(`${number(steps)} / ${columns.length > 1 && runs > 0 ? "≥ " : ""}${number(runs)}`),
    );
  });
  const heads = ["when", "outcome", "imminent", "steps / runs"]
    .map((text, at) => make("th", { class: at ? "number" : "" }, text));
  const summed = state.columns.some(({ pool, runs }, at) => pool !== at && runs > 0);
  const why = summed && make("p", { class: "measured" }, "≥: steps are added up over these ranges of steps; runs are those of the "
    + "range with most, for a run may be in several.");
  return [heading("By the clock"), table(heads, rows), why];
}

// How many training steps there were the last of their run, and how many there were.
function endings(of, key) {
  const node = of.nodes.get(key);
  const begun = node.states.includes(data.start) ? data.training_runs : 0;
  const all = node.states.reduce((sum, state) => sum + data.states[state].visits, begun);
  const on = [...of.edges.values()].reduce((sum, edge) => sum + (edge.tail === key ? edge.count : 0), 0);
  return { ended: Math.max(all - on, 0), all };
}

// Where a node leads, and from where it is reached.
function ways(of, key, { choose }) {
  const edges = [...of.edges.values()];
  const { ended } = endings(of, key);
  const list = (title, chosen, end, ended = 0) => {
    if (!chosen.length && !ended) return null;
    const all = chosen.reduce((sum, edge) => sum + edge.count, ended) || 1;
    const rows = chosen.map((edge) => {
      const there = edge[end] === key ? "itself" : nodeName(of, edge[end]);
      const open = word(there, () => choose(of.name, edge.key));
      return shareLine([open, " by ", quote(gloss(edge.symbols[0][0])), andMore(edge.symbols)], edge.count / all,
        `${number(edge.count)} · `);
    });
    const place = chosen.filter((edge) => edge.count >= ended).length;
    if (ended) rows.splice(place, 0, shareLine("the end of the run", ended / all, `${number(ended)} · `));
    const rest = rows.slice(LISTED);
    const more = rest.length > 0 && make("details", {}, make("summary", {}, `and ${rest.length} more`), rest);
    return [heading(title), rows.slice(0, LISTED), more];
  };
  return [
    list("Goes on to", edges.filter((edge) => edge.tail === key), "head", ended),
    list("Comes from", edges.filter((edge) => edge.head === key && edge.tail !== key), "tail"),
  ];
}

// What can be done about the symbols that bring a third of the training steps there or more.
function advice(at, links) {
  const into = new Map();
  for (const edge of sheets.states.edges.values()) {
    if (edge.head !== `s${at}`) continue;
    for (const [symbol, times] of edge.symbols) into.set(symbol, (into.get(symbol) ?? 0) + times);
  }
  const all = [...into.values()].reduce((sum, times) => sum + times, 0);
  const said = [...into].filter(([symbol, times]) => data.symbols[symbol].advice && times >= all / 3);
  return said.map(([symbol, times]) => make("p", {}, "Where it is “", toSymbol(symbol, links),
    `”, as in ${share(times / all)} of the training steps that end here, to change: ${data.symbols[symbol].advice}`));
}

function stateDetails(at, links) {
  const state = data.states[at];
  const clock = state.columns.length > 1;
  if (!state.entered) {
    return [
      make("p", {}, make("b", { class: "big" }, `State ${at} `), chip("start", "")),
      make("p", {}, "Every run begins here, and no step ends here: no reading comes from this state. "
        + `It stands where the share of training runs that failed, ${risk(state.outcome)}, puts it.`),
      ways(sheets.states, `s${at}`, links),
    ];
  }
  const span = [state.least, state.peak].map(risk).reduce((low, peak) => (low === peak ? low : `from ${low} to ${peak}`));
  const rest = `, interval ${interval([state.low, state.high])} (90 %)`
    + (clock ? `; mean ${risk(state.outcome)}, ${state.usually ? "usually " : ""}${span}` : "")
    + `; ${clock ? "mean " : ""}imminent risk ${risk(state.imminent)}`;
  const [failed, successful] = state.alarms;
  const { ended, all } = endings(sheets.states, `s${at}`);
  const { says } = data.levels[state.level];
  const alarms = data.alarm !== null && state.alarms_at;
  const onThreshold = notAbove(state.usual, says);
  return [
    make(
      "p",
      {},
      make("b", { class: "big" }, `State ${at} `),
      levelChip(says),
      " ",
      alarms && says !== "ALARM" && levelChip("ALARM"),
      alarms && ` at ${alarms} `,
      at === data.start && chip("start", ""),
      " ",
      state.thin && chip("thin evidence", "thin"),
      " ",
      2 * ended > all && chip("most runs end here", "history"),
    ),
    make("p", {}, make("b", {}, `${clock ? "Usual outcome" : "Outcome"} risk `, riskWithWhy(state.usual)), rest),
    state.does && make("p", {}, make("b", {}, "Here the agent: "), quote(state.does)),
    make("p", {}, quote(state.sentence)),
    failed + successful > 0 && make("p", {}, `First alarms on test runs: ${failed} failed, ${successful} successful.`),
    state.flags.map((flag) => make("p", {}, chip("flag", "thin"), " ", quote(flag))),
    onThreshold && make("p", {}, `Its usual risk is ${onThreshold}.`),
    state.doubt && make("p", {}, chip("doubt", "thin"), " ", state.doubt),
    ...advice(at, links),
    gauge(state.usual, [state.low, state.high]),
    evidence(state, links),
    make("p", {}, `${count(state.visits, "training step")} ended here, ${share(state.share)} of all`
      + `${ended ? `; ${number(ended)} of them, ${share(ended / all)}, were the last of their run` : ""}.`),
    byTheClock(state),
    state.examples.length > 0 && heading("Steps that ended here"),
    state.examples.map(example),
    ways(sheets.states, `s${at}`, links),
  ];
}

function levelDetails(key, links) {
  const node = sheets.levels.nodes.get(key);
  const states = [...node.states].sort((a, b) => data.states[b].visits - data.states[a].visits);
  return [
    make("p", {}, make("b", { class: "big" }, bounds(data.levels[node.level]))),
    make("p", {}, `${node.spoken}.`),
    heading("Its states, busiest first"),
    make("p", {}, states.map((state) => [toState(state, links), ` ${risk(data.states[state].usual)}  `])),
    ways(sheets.levels, key, links),
  ];
}

function edgeDetails(of, key, links) {
  const edge = of.edges.get(key);
  const leaving = total([...of.edges.values()].filter((other) => other.tail === edge.tail));
  const end = (node) => word(nodeName(of, node), () => links.choose(of.name, node));
  const { examples } = data.symbols[edge.symbols[0][0]];
  const part = share(edge.count / leaving);
  const often = `Taken ${count(edge.count, "time")} in training: ${part} of the steps from there.`;
  return [
    make("p", {}, make("b", {}, "From "), end(edge.tail), make("b", {}, " to "), end(edge.head)),
    make("p", {}, often, edge.drawn ? "" : " Too rare to be in the drawing."),
    heading(edge.symbols.length === 1 ? "Its symbol" : `Its ${edge.symbols.length} symbols`),
    edge.symbols.map(([symbol, times]) =>
      shareLine(toSymbol(symbol, links), times / Math.max(edge.count, 1), `${number(times)} · `)),
    examples.length > 0 && heading("Steps like these"),
    examples.map(example),
  ];
}

// Shows what a key of a picture stands for.
function showDetails(of, key, links) {
  let content = null;
  if (of.edges.has(key)) content = edgeDetails(of, key, links);
  else if (of.name === "levels") content = levelDetails(key, links);
  else content = stateDetails(of.nodes.get(key).states[0], links);
  const box = byId("details");
  box.scrollTop = 0;
  box.replaceChildren(make("div", {}, content));
}

// One line on what is pointed at, under the graph.
function caption(of, key) {
  let text = "";
  if (key !== null && of.edges.has(key)) {
    const edge = of.edges.get(key);
    const by = `${gloss(edge.symbols[0][0])}${andMore(edge.symbols)}`;
    text = `${nodeName(of, edge.tail)} → ${nodeName(of, edge.head)} by ${by}, ${count(edge.count, "time")}`;
  } else if (key !== null) {
    text = of.nodes.get(key).spoken;
  }
  byId("caption").textContent = text;
}

