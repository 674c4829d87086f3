// Walk the automaton of table.json: `node run.mjs [table.json [GROUP]] < runs`; with GROUP, by its own thresholds.
// Each input line is a JSON array with one entry a step of a run: a symbol's number, or, where the table names its
// tools, {"tool": name, "error": bool, "repeat": bool}. Each output line is an array: what a monitor says step by step.
import { readFileSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

// The number of a step: tool x error x repeat, tools that the table does not name together.
function symbolOf(table, entry, step) {
  let symbol = entry;
  const kinds = [entry?.tool, entry?.error, entry?.repeat].map((value) => typeof value).join();
  if (table.tools !== null && kinds === "string,boolean,boolean") {
    const place = table.tools.indexOf(entry.tool);
    symbol = (place < 0 ? table.tools.length : place) * 4 + (entry.error ? 2 : 0) + (entry.repeat ? 1 : 0);
  }
  if (Number.isInteger(symbol) && symbol >= 0 && symbol < table.fallback.length) return symbol;
  throw new Error(`step ${step} is no step that this table knows`);
}

export function walk(table, entries, group = null) { // what the monitor says after each step of one run
  if (!Array.isArray(entries)) throw new Error("a run is an array of steps");
  const own = group !== null && Object.hasOwn(table.groups?.of ?? {}, group) ? table.groups.of[group] : {};
  const { alarm, watch, release, consecutive, cooldown } = { ...table, ...own }; // null: never alarms; an alarm stays
  let [state, over, cooling, sounding] = [table.start, 0, 0, false];
  return entries.map((entry, i) => {
    const symbol = symbolOf(table, entry, i + 1);
    const ways = [table.transitions[state][symbol], table.fallback[symbol], state]; // known, usual, none
    state = ways.find((after) => after >= 0);
    const [imminent, outcome] = table.risks[state][table.clock.filter((begins) => begins <= i + 1).length];
    let level = outcome > watch ? "WATCH" : "OK";
    if (sounding && (release === null || outcome >= release)) {
      level = "ALARM";
    } else if (sounding) {
      [sounding, over, cooling] = [false, 0, cooldown];
    } else if (cooling > 0) {
      cooling -= 1;
    } else if (alarm !== null) {
      over = outcome > alarm ? over + 1 : 0;
      if (over >= consecutive) [sounding, level] = [true, "ALARM"];
    }
    return { state, imminent_risk: imminent, outcome_risk: outcome, level };
  });
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const table = JSON.parse(readFileSync(process.argv[2] ?? new URL("table.json", import.meta.url), "utf8"));
  let [rest, number] = ["", 0];
  const say = (line) => console.log(JSON.stringify(walk(table, JSON.parse((number++, line)), process.argv[3])));
  try {
    for await (const chunk of process.stdin.setEncoding("utf8")) {
      const lines = (rest + chunk).split("\n"); // at this character alone: JSON may hold other ends of lines
      rest = lines.pop();
      lines.forEach(say);
    }
    if (rest) say(rest);
  } catch (error) {
    const what = error instanceof SyntaxError ? "this is no JSON" : error.message; // theirs quotes the line
    console.error(`line ${number}: ${what}. Needed: ${table.needed}`);
    process.exitCode = 1;
  }
}
