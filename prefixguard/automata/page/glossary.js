// The symbols in words: a table that can be sorted, and a search that shows where a symbol leads.

// Name, heading, and what a column is sorted by.
const COLUMNS = [
  ["number", "No.", (symbol, at) => at],
  ["gloss", "Symbol", (symbol) => symbol.gloss.toLowerCase()],
  ["condition", "What defines it", null],
  ["tools", "Tools and statuses", null],
  ["count", "Steps", (symbol) => -symbol.count],
  ["change", "Risk change", (symbol) => -(symbol.thin ? 0 : symbol.risk_change ?? 0)],
  ["examples", "Example steps", null],
];

const shares = (pairs) => pairs.slice(0, 5).map(([name, part]) => shareLine(quote(name), part));
const labelled = (title, content, kind = "") =>
  make("td", { "data-label": title, class: kind }, make("div", {}, content));
const small = (...content) => make("div", { class: "measured" }, ...content);

const metSymbols = data.symbols.map((symbol, at) => at).filter((at) => data.symbols[at].count > 0);
// Whether a symbol rests on earlier steps is said where symbols differ in it.
const historyTells = new Set(metSymbols.map((at) => data.symbols[at].reads_history)).size > 1;

function glossaryRow(symbol, at, links) {
  const cells = {
    number: String(at),
    gloss: [symbol.does && make("p", {}, quote(symbol.does)), toSymbol(at, links), historyTells && symbol.reads_history && make("div", {}, chip("rests on earlier steps", "history"))],
    condition: [quote(symbol.condition), symbol.advice && small(`To change: ${symbol.advice}`)],
    tools: [shares(symbol.tools), shares(symbol.statuses)],
    count: [number(symbol.count), small(share(symbol.share)), symbol.earliest > 1 && small(`first at step ${symbol.earliest}`)],
    change: symbol.thin ? small("too few held-out runs") : signed(symbol.risk_change),
    examples: symbol.examples.length ? symbol.examples.map(example) : "–",
  };
  const kind = { count: "number", change: "number" };
  return make("tr", { "data-symbol": at }, COLUMNS.map(([name, title]) => labelled(title, cells[name], kind[name])));
}

function showGlossary(links) {
  const rows = new Map(metSymbols.map((at) => [at, glossaryRow(data.symbols[at], at, links)]));
  const heads = COLUMNS.map(([, title, by]) => {
    const head = make("th", { scope: "col" });
    head.append(by ? make("button", { type: "button", onclick: () => sort(head, by) }, title) : title);
    return head;
  });
  const all = table(heads, [...rows.values()]);
  all.className = "stack";
  function sort(head, by) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const order = metSymbols.map((at) => [by(data.symbols[at], at), at]);
    order.sort(([a, i], [b, j]) => (a < b ? -1 : a > b ? 1 : i - j));
    if (!up) order.reverse();
    all.querySelector("tbody").append(...order.map(([, at]) => rows.get(at)));
  }
  byId("glossary").replaceChildren(all);
}

// The states of the tables above the graph lead to the graph, and first alarms to the replay of their run.
function linkTables(links) {
  const toGraph = (cell) => {
    const state = Number.parseInt(cell.textContent, 10);
    cell.replaceChildren(word(cell.textContent, () => {
      links.choose("states", `s${state}`);
      byId("graph-title").scrollIntoView();
    }));
  };
  document.querySelectorAll("#ranked tbody th").forEach(toGraph);
  document.querySelectorAll("#first tbody tr").forEach((row, at) => {
    const [run, step] = data.first[at];
    const [name, , , state] = row.children;
    name.replaceChildren(word(name.textContent, () => links.open(run, step)));
    toGraph(state);
  });
}

const SHOWN = 12; // things found that are listed before "and more"

// "state 15", "symbol 4" or a number alone: what is asked for by its number. A number alone is of both.
function numbered(query) {
  const found = /^(?:(state|symbol)\s+)?(\d+)$/i.exec(query.trim());
  if (!found) return null;
  const [kind, number] = [found[1]?.toLowerCase(), Number(found[2])];
  return {
    symbols: kind !== "state" && metSymbols.includes(number) ? [number] : [],
    states: kind !== "symbol" && number < data.states.length ? [number] : [],
    run: kind ? null : found[2],
  };
}

const wordsOf = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);
const holds = (texts, words) => {
  const text = texts.join("\n").toLowerCase();
  return words.every((one) => text.includes(one));
};

// The share of a symbol's steps that have a status.
const statusShare = (symbol, status) => data.symbols[symbol].statuses.find(([name]) => name === status)?.[1] ?? 0;
const STATUSES = new Set(metSymbols.flatMap((at) => data.symbols[at].statuses.map(([name]) => name)));
const statusOf = (query) => [query.trim().toLowerCase().replace(/^status[:\s]+/, "")].find((one) => STATUSES.has(one));

// The level that a query names: it finds where that is said, and not what has the word in a sentence.
const levelNamed = (query) => ["ALARM", "WATCH"].find((level) => level.toLowerCase() === query.trim().toLowerCase());

// Symbols that hold every word of the query, busiest first: in the name, else in the definition or the usual tool, else
// in tools and terms, else in examples. What is named by its number is found by that alone. The nearest of these kinds
// alone counts, so that a word of a name finds what is named so. A status finds every symbol that has it, the surest
// first.
function matching(query) {
  const words = wordsOf(query);
  if (!words.length || levelNamed(query)) return [];
  if (numbered(query)) return numbered(query).symbols;
  const status = statusOf(query);
  if (status !== undefined) {
    return metSymbols.filter((at) => statusShare(at, status) > 0)
      .sort((a, b) => statusShare(b, status) - statusShare(a, status) || a - b);
  }
  const names = (pairs) => pairs.map(([name]) => name);
  const kinds = [
    () => [],
    ({ condition, tools, advice }) => [condition, advice, ...names(tools.filter(([, part]) => part >= 0.5))],
    ({ condition, tools, terms }) => [condition, ...names(tools), ...names(terms)],
    ({ statuses, examples }) => [...names(statuses), ...examples],
  ];
  for (const texts of kinds) {
    const found = metSymbols
      .filter((at) => holds([gloss(at), ...texts(data.symbols[at])], words));
    if (found.length) return found.sort((a, b) => data.symbols[b].count - data.symbols[a].count || a - b);
  }
  return [];
}

// Symbols, other than those found, that hold every word in what the catalogue says of their behaviours.
function saidOf(query, found) {
  const words = wordsOf(query);
  if (!words.length || numbered(query) || levelNamed(query) || statusOf(query) !== undefined) return [];
  return metSymbols.filter((at) => !found.includes(at)
    && holds([data.behaviours ? data.symbols[at].condition : "", data.symbols[at].advice], words));
}

// States that a symbol leads to at whose steps a status is mostly there.
function statesOf(status) {
  const edges = [...sheets.states.edges.values()];
  const led = edges.filter((edge) => edge.symbols.some(([symbol, n]) => n > 0 && statusShare(symbol, status) >= 0.5));
  return new Set(led.map((edge) => Number(edge.head.slice(1))));
}

// Whether a state says a level at steps at which runs were there, or raised a first alarm.
const saysLevel = (state, level) => state.entered
  && (state.columns.some((column) => column.known && column.met && data.levels[column.level].says === level)
    || (level === "ALARM" && state.alarms[0] + state.alarms[1] > 0));

// States by their number ("state 15", "15"), by the level that they say, else by what leads there, what dominates them
// and their examples.
function matchingStates(query) {
  if (numbered(query)) return numbered(query).states;
  const words = wordsOf(query);
  if (!words.length) return [];
  const status = statusOf(query);
  return data.states.flatMap((state, at) => {
    if (levelNamed(query)) return saysLevel(state, levelNamed(query)) ? [at] : [];
    if (status !== undefined && statesOf(status).has(at)) return [at];
    const said = levelSaid(data.levels[state.level].says);
    return holds([state.sentence, state.does, said, ...state.flags, ...state.examples], words) ? [at] : [];
  });
}

// Runs that are replayed whose id holds every word; a number alone is one that stands whole in it.
function matchingRuns(query) {
  const words = wordsOf(query);
  const asked = numbered(query);
  if (!words.length || (asked && asked.run === null)) return [];
  const whole = asked && new RegExp(`(^|\\D)${asked.run}(\\D|$)`);
  return data.replays.flatMap(({ run_id: id }, run) => ((whole ? whole.test(id) : holds([id], words)) ? [run] : []));
}

// Steps of the runs that are replayed whose texts hold every word, as [run, step]; a number is of a state or a symbol,
// and of a level the first step of each run that says it.
function matchingSteps(query) {
  const words = wordsOf(query);
  if (!words.length || numbered(query)) return [];
  if (levelNamed(query)) {
    return data.replays.map(({ steps }, run) => [run, steps.findIndex(({ level }) => level === levelNamed(query)) + 1])
      .filter(([, step]) => step > 0);
  }
  return data.replays.flatMap((replay, run) => replay.steps
    .map((step, at) => [run, at + 1, step])
    .filter(([, , step]) => step.texts.some(([name]) => name === `result, ${statusOf(query)}`)
      || holds(step.texts.map(([, text]) => text), words)));
}

// Whether so many symbols were found that nothing would stand out.
const tooMany = (found) => found.length > 3 && found.length > metSymbols.length / 2;

// What was found as buttons, and the symbols' rows of the table marked.
function showFound(found, query, only, links) {
  const button = (content, action, pressed, title = null) => make("button",
    { type: "button", "aria-pressed": pressed === undefined ? null : String(pressed), title, onclick: action }, content);
  // A run by its short name; the whole one is said where one points at it.
  const toRun = (run, step, more = "") => button(quote(data.replays[run].short + more), () => links.open(run, step),
    undefined, data.replays[run].run_id);
  const list = (title, pieces) => {
    if (!pieces.length) return [];
    const rest = pieces.slice(SHOWN);
    const more = button(`and ${rest.length} more`, () => more.replaceWith(...rest));
    return [make("span", {}, title), ...pieces.slice(0, SHOWN), ...(rest.length ? [more] : [])];
  };
  const many = only === null && tooMany(found)
    ? `${found.length} of ${metSymbols.length} symbols have these words, too many to stand out: choose one, or add a word.`
    : "Symbols:";
  const symbols = (some) => some.map((symbol) => button(quote(gloss(symbol)), () => links.search(symbol), symbol === only));
  const pieces = [
    ...list(many, symbols(found)),
    ...list("States:", matchingStates(query).map((state) =>
      button(`state ${state}`, () => links.choose("states", `s${state}`)))),
    ...list(found.length ? "Other symbols whose definition or advice has these words:" : "Symbols:",
      symbols(saidOf(query, found))),
    ...list("Runs:", matchingRuns(query).map((run) => toRun(run, 0))),
    ...list("Steps of runs:", matchingSteps(query).map(([run, step]) => toRun(run, step, `, step ${step}`))),
  ];
  byId("found").replaceChildren(...(query && !pieces.length ? ["Nothing has these words."] : pieces));
  const marked = new Set(only === null ? found : [only]);
  for (const row of byId("glossary").querySelectorAll("tr[data-symbol]")) {
    row.classList.toggle("on", marked.has(Number(row.dataset.symbol)));
  }
}
