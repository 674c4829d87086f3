// The symbols in words: a table that can be sorted, and a search that shows where a symbol leads.

// Name, heading, and what a column is sorted by.
const COLUMNS = [
  ["number", "No.", (symbol, at) => at],
  ["gloss", "Symbol", (symbol) => symbol.gloss.toLowerCase()],
  ["condition", "What defines it", null],
  ["tools", "Tools and statuses", null],
  ["count", "Steps", (symbol) => -symbol.count],
  ["change", "Risk change", (symbol) => -(symbol.risk_change ?? 0)],
  ["examples", "Example steps", null],
];

const shares = (pairs) => pairs.slice(0, 5).map(([name, part]) => shareLine(quote(name), part));
const labelled = (title, content, kind = "") =>
  make("td", { "data-label": title, class: kind }, make("div", {}, content));
const small = (...content) => make("div", { class: "measured" }, ...content);

function termList(terms) {
  if (!terms.length) return null;
  const pieces = terms.slice(0, 8).map(([term, weight], at) =>
    [at ? ", " : "", quote(term), weight === null ? "" : ` ${weight.toFixed(2)}`]);
  return small("Terms: ", pieces);
}

function glossaryRow(symbol, at, links) {
  const cells = {
    number: String(at),
    gloss: [toSymbol(at, links), symbol.reads_history && make("div", {}, chip("reads history", "history"))],
    condition: [quote(symbol.condition), termList(symbol.terms)],
    tools: [shares(symbol.tools), shares(symbol.statuses)],
    count: [number(symbol.count), small(share(symbol.share))],
    change: signed(symbol.risk_change),
    examples: symbol.examples.length ? symbol.examples.map(example) : "–",
  };
  const kind = { count: "number", change: "number" };
  return make("tr", { "data-symbol": at }, COLUMNS.map(([name, title]) => labelled(title, cells[name], kind[name])));
}

function showGlossary(links) {
  const rows = data.symbols.map((symbol, at) => glossaryRow(symbol, at, links));
  const heads = COLUMNS.map(([, title, by]) => {
    const head = make("th", { scope: "col" });
    head.append(by ? make("button", { type: "button", onclick: () => sort(head, by) }, title) : title);
    return head;
  });
  const all = table(heads, rows);
  function sort(head, by) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const order = data.symbols.map((symbol, at) => [by(symbol, at), at]);
    order.sort(([a, i], [b, j]) => (a < b ? -1 : a > b ? 1 : i - j));
    if (!up) order.reverse();
    all.querySelector("tbody").append(...order.map(([, at]) => rows[at]));
  }
  byId("glossary").replaceChildren(all);
}

// The states of the tables above the graph lead to the graph.
function linkStates(links) {
  for (const cell of document.querySelectorAll("#ranked tbody th")) {
    const state = Number.parseInt(cell.textContent, 10);
    cell.replaceChildren(word(cell.textContent, () => {
      links.choose("states", `s${state}`);
      byId("graph-title").scrollIntoView();
    }));
  }
}

const SHOWN = 12; // found symbols that are listed before "and more"

// Symbols that hold every word of the query, busiest first: in the name, else in the definition or the usual tool, else
// anywhere. The nearest of these kinds alone counts, so that a word of a name finds what is named so.
function matching(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const names = (pairs) => pairs.map(([name]) => name);
  const kinds = [
    () => [],
    ({ condition, tools }) => [condition, ...names(tools.filter(([, part]) => part >= 0.5))],
    ({ condition, tools, terms }) => [condition, ...names(tools), ...names(terms)],
  ];
  for (const texts of kinds) {
    const found = data.symbols.map((symbol, at) => at).filter((at) => {
      const text = [`symbol ${at}`, gloss(at), ...texts(data.symbols[at])].join("\n").toLowerCase();
      return words.every((one) => text.includes(one));
    });
    if (found.length) return found.sort((a, b) => data.symbols[b].count - data.symbols[a].count || a - b);
  }
  return [];
}

// Whether so many symbols were found that nothing would stand out.
const tooMany = (found) => found.length > 3 && found.length > data.symbols.length / 2;

// The found symbols as buttons, and their rows of the table marked.
function showFound(found, query, only, choose) {
  const button = (symbol) =>
    make(
      "button",
      { type: "button", "aria-pressed": String(symbol === only), onclick: () => choose(symbol) },
      quote(gloss(symbol)),
    );
  const pieces = found.slice(0, SHOWN).map(button);
  const rest = found.slice(SHOWN);
  if (rest.length) {
    const more = make("button", { type: "button", onclick: () => more.replaceWith(...rest.map(button)) },
      `and ${rest.length} more`);
    pieces.push(more);
  }
  if (only === null && tooMany(found)) {
    const many = `${found.length} of ${data.symbols.length} symbols have these words, too many to stand out: `;
    pieces.unshift(make("span", {}, `${many}choose one, or add a word.`));
  }
  if (query && !found.length) pieces.push("No symbol has these words.");
  byId("found").replaceChildren(...pieces);
  const marked = new Set(only === null ? found : [only]);
  for (const row of byId("glossary").querySelectorAll("tr[data-symbol]")) {
    row.classList.toggle("on", marked.has(Number(row.dataset.symbol)));
  }
}
