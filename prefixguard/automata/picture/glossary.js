// The symbols in words: a table that can be sorted, and a search that shows where a symbol leads.

const HEADS = [
  ["number", "No.", (symbol, at) => at],
  ["gloss", "Symbol", (symbol) => symbol.gloss.toLowerCase()],
  ["condition", "What defines it", null],
  ["tools", "Tools and statuses", null],
  ["count", "Steps", (symbol) => -symbol.count],
  ["change", "Risk change", (symbol) => -(symbol.riskChange ?? 0)],
  ["examples", "Example steps", null],
];

function shares(pairs) {
  return pairs.slice(0, 5).map(([name, part]) => make("div", { class: "share" }, quote(name), share(part), meter(part)));
}

function glossaryRow(symbol, at, links) {
  const cells = {
    number: [String(at)],
    gloss: [make("button", { type: "button", class: "plain", onclick: () => links.search(at) }, quote(gloss(at))),
      symbol.readsHistory && make("div", {}, chip("reads history", "history"))],
    condition: [make("div", {}, quote(symbol.condition)),
      symbol.terms.length > 0 && make("div", { class: "measured" }, "Terms: ", symbol.terms.slice(0, 8).map(([term, weight], n) => [n ? ", " : "", quote(term), ` ${weight === null ? "" : weight.toFixed(2)}`]).flat())],
    tools: [shares(symbol.tools), shares(symbol.statuses)].flat(),
    count: [number(symbol.count), make("div", { class: "measured" }, share(symbol.share))],
    change: [signed(symbol.riskChange)],
    examples: symbol.examples.map((text) => make("div", { class: "example" }, quote(text))),
  };
  return make("tr", { "data-symbol": at },
    HEADS.map(([name, title]) => make("td", { "data-label": title, class: ["count", "change"].includes(name) ? "number" : "" }, make("div", {}, cells[name]))));
}

function showGlossary(links) {
  const rows = data.symbols.map((symbol, at) => glossaryRow(symbol, at, links));
  const body = make("tbody", {}, rows);
  const heads = HEADS.map(([, title, by]) => {
    const head = make("th", { scope: "col" });
    if (!by) head.append(title);
    else head.append(make("button", { type: "button", onclick: () => sort(head, by) }, title));
    return head;
  });
  function sort(head, by) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const order = data.symbols.map((symbol, at) => [by(symbol, at), at])
      .sort(([a, i], [b, j]) => (a < b ? -1 : a > b ? 1 : i - j));
    if (!up) order.reverse();
    body.append(...order.map(([, at]) => rows[at]));
  }
  byId("glossary").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, heads)), body));
}

function showStates(links) {
  const heads = ["State", "Level", "Outcome risk", "90 % interval", "Imminent", "Training steps", "Evidence: steps / runs"];
  const order = data.states.map((state, at) => at).sort((a, b) => data.states[a].outcome - data.states[b].outcome || a - b);
  const rows = order.map((at) => {
    const state = data.states[at];
    const cells = [
      [toState(at, links), at === data.start && " (start)"],
      [levelChip(data.levels[state.level].says)],
      [risk(state.outcome)], [range(state.interval)], [risk(state.imminent)],
      [`${number(state.visits)} (${share(state.share)})`],
      [`${number(state.steps)} / ${number(state.runs)}`, state.standIn !== null ? `, stands in: state ${state.standIn}` : state.thin && ", thin"],
    ];
    return make("tr", {}, cells.map((cell, n) => make("td", { "data-label": heads[n] }, make("div", {}, cell))));
  });
  byId("states-table").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, rows)));
}

// Symbols whose gloss, condition, tools or terms hold every word of the query.
function matching(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  return data.symbols.map((symbol, at) => at).filter((at) => {
    const symbol = data.symbols[at];
    const text = [`symbol ${at}`, symbol.gloss, symbol.condition, ...symbol.tools.map(([tool]) => tool), ...symbol.terms.map(([term]) => term)].join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

// The found symbols as buttons, and their rows of the table marked.
function showFound(found, query, only, choose) {
  const pieces = found.slice(0, 24).map((symbol) =>
    make("button", { type: "button", "aria-pressed": String(symbol === only), onclick: () => choose(symbol) }, quote(gloss(symbol))));
  if (found.length > 24) pieces.push(`and ${found.length - 24} more`);
  if (query && !found.length) pieces.push("No symbol has these words.");
  byId("found").replaceChildren(...pieces);
  const marked = new Set(only === null ? found : [only]);
  for (const row of byId("glossary").querySelectorAll("tr[data-symbol]")) row.classList.toggle("on", marked.has(Number(row.dataset.symbol)));
}

