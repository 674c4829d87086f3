// Replay: a run walks along the graph, step by step.

const PAUSE = 900; // milliseconds between steps while it plays

function makeReplay(moved, links) {
  let run = 0;
  let step = 0;
  let timer = null;

  const title = (replay, at) => [`${at + 1}`, replay.note && "asked for", replay.kind, replay.run_id, count(replay.steps.length, "step")]
    .filter(Boolean).join(" · ");
  const sounds = (replay) => replay.steps.some(({ level }) => level === "ALARM");

  // What runs can be chosen by: a name and what a run says to it; only where runs differ.
  const filters = [
    ["outcome", ({ failed }) => (failed === null ? "not known" : failed ? "failed" : "succeeded")],
    ["alarm", (replay) => (sounds(replay) ? "alarm" : "no alarm")],
    ...[...new Set(data.replays.flatMap(({ groups }) => groups.map(([name]) => name)))]
      .map((name) => [name, ({ groups }) => groups.find(([other]) => other === name)?.[1] ?? "none"]),
  ].map(([name, of]) => ({ name, of, values: [...new Set(data.replays.map(of))].sort(), wanted: "" }))
    .filter(({ values }) => values.length > 1);

  const fits = (replay) => filters.every(({ of, wanted }) => !wanted || of(replay) === wanted);

  // The runs that can be chosen; the one that is shown stays among them.
  function listRuns() {
    const there = data.replays.map((replay, at) => [replay, at]).filter(([replay, at]) => at === run || fits(replay));
    byId("replay-run").replaceChildren(...there.map(([replay, at]) => make("option", { value: at }, title(replay, at))));
    byId("replay-run").value = String(run);
  }

  function filter(one, value) {
    one.wanted = value;
    const found = data.replays.findIndex(fits);
    byId("replay-none").hidden = found >= 0;
    if (found >= 0 && !fits(current())) open(found);
    else listRuns();
  }

  byId("replay-filters").replaceChildren(...filters.map((one) => make(
    "label",
    {},
    make("span", {}, `${one.name} `),
    make("select", { onchange: (event) => filter(one, event.target.value), "data-filter": one.name },
      make("option", { value: "" }, "any"), one.values.map((value) => make("option", { value }, value))),
  )));
  byId("replay-chosen").textContent = data.chosen + (data.cut
    ? ` ${count(data.cut, "text")} of steps ${data.cut === 1 ? "is" : "are"} cut at ${number(data.letters)} letters.` : "");

  const current = () => data.replays[run];
  const stateAt = (at) => (at === 0 ? data.start : current().steps[at - 1].state);

  function showPath() {
    const key = (at) => sheet.nodeOf.get(stateAt(at));
    forgetGhosts("of-replay");
    const been = [];
    for (let at = 1; at <= step; at += 1) {
      const edge = sheet.edges.get(`${key(at - 1)}-${key(at)}`);
      const last = at === step;
      if (edge?.element) been.push([edge.element, last]);
      else ghost(key(at - 1), key(at), `of-replay ${last ? "now" : "been"}`);
    }
    const nodes = Array.from({ length: step + 1 }, (_, at) => sheet.nodes.get(key(at)).element);
    mark("been", [...been.map(([element]) => element), ...nodes]);
    mark("now", been.filter(([, last]) => last).map(([element]) => element));
    mark("here", [sheet.nodes.get(key(step)).element]);
    bring(key(step));
  }

  function describe() {
    if (step === 0) {
      const where = `, in state ${data.start}, where every run begins.`;
      const how = "Go on with the buttons, the slider or the arrow keys, or click into the curve.";
      const note = current().note && make("p", {}, chip(current().note, "thin"));
      return [make("p", {}, make("b", {}, "Before the first step"), where), note, make("p", {}, how)].filter(Boolean);
    }
    const now = current().steps[step - 1];
    const teacher = now.teacher === null ? "" : `, teacher's outcome risk ${risk(now.teacher)}`;
    const when = data.clock.length ? ` (clock: ${spans[columnOf(step)]})` : "";
    const equal = notAbove(now.outcome, now.level);
    const onThreshold = equal && ` (${equal})`;
    const unseen = " No training run took this symbol there; the run goes where the symbol most often leads.";
    return [
      make(
        "p",
        {},
        make("b", {}, `Step ${step} of ${current().steps.length}: `),
        toSymbol(now.symbol, links),
        ", from ",
        toState(stateAt(step - 1), links),
        " to ",
        toState(now.state, links),
        ".",
      ),
      now.unseen && make("p", {}, chip("unseen", "thin"), unseen),
      make(
        "p",
        {},
        levelChip(now.level),
        " ",
        make("b", {}, `Outcome risk ${risk(now.outcome)}`),
        `${onThreshold}${when}, imminent ${risk(now.imminent)}${teacher}`,
      ),
      aboutLevel(now),
      now.texts.map(([name, text]) => make("div", { class: "field" }, make("h3", {}, name),
        make("div", { class: "said", tabindex: 0, role: "region", "aria-label": name }, quote(text)))),
    ].flat().filter(Boolean);
  }

  // Where the level is not that of the present risk: an alarm that stays on, or one that waits for more steps.
  function aboutLevel({ level, outcome, alone }) {
    if (data.alarm === null || alone === null || (level === "ALARM") === (alone === "ALARM")) return null;
    if (level !== "ALARM") return make("p", {}, "The risk is above the alarm threshold, in too few steps in a row so far.");
    let since = step;
    while (since > 1 && current().steps[since - 2].level === "ALARM") since -= 1;
    const after = current().steps.findIndex((one, at) => at >= step && one.level !== "ALARM");
    const till = after < 0 ? "to the end of the run" : `to step ${after}`;
    return make("p", {}, chip("stays on", "thin"), ` In ALARM since step ${since}, and it stays on ${till}. The present risk, `
      + `${risk(outcome)}, is not above the threshold, ${risk(data.alarm)}; by itself it would say ${alone}.`);
  }

  function show() {
    const steps = current().steps.length;
    const slider = byId("replay-slider");
    slider.max = String(steps);
    slider.value = String(step);
    const risen = step === 0 ? "" : `, outcome risk ${risk(current().steps[step - 1].outcome)}`;
    slider.setAttribute("aria-valuetext", `step ${step} of ${steps}${risen}`);
    for (const id of ["replay-first", "replay-back"]) byId(id).disabled = step === 0;
    for (const id of ["replay-next", "replay-last"]) byId(id).disabled = step === steps;
    byId("replay-step").replaceChildren(...describe());
    drawCurve(current(), step, go);
    showPath();
    moved(run, step);
  }

  function go(to) {
    step = Math.min(Math.max(to, 0), current().steps.length);
    if (timer && step === current().steps.length) stop();
    show();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    byId("replay-play").textContent = "Play";
  }

  function play() {
    if (timer) return stop();
    if (step === current().steps.length) go(0);
    byId("replay-play").textContent = "Pause";
    timer = setInterval(() => go(step + 1), PAUSE);
    return undefined;
  }

  function open(wanted, at = 0) {
    if (timer) stop();
    run = Math.min(Math.max(wanted, 0), data.replays.length - 1);
    strokes(current());
    listRuns();
    go(at);
  }

  if (!data.replays.length) {
    byId("replay-body").replaceChildren(make("p", {}, "There is no run to replay in this file."));
    return { open() {}, refresh() {}, next() {}, back() {}, state: () => null };
  }
  const by = (change) => () => {
    if (timer) stop();
    go(change());
  };
  byId("replay-first").addEventListener("click", by(() => 0));
  byId("replay-back").addEventListener("click", by(() => step - 1));
  byId("replay-next").addEventListener("click", by(() => step + 1));
  byId("replay-last").addEventListener("click", by(() => current().steps.length));
  byId("replay-play").addEventListener("click", play);
  byId("replay-slider").addEventListener("input", by(() => Number(byId("replay-slider").value)));
  byId("replay-run").addEventListener("change", () => open(Number(byId("replay-run").value)));
  new ResizeObserver(() => drawCurve(current(), step, go)).observe(byId("curve"));
  return { open, refresh: showPath, next: by(() => step + 1), back: by(() => step - 1), state: () => stateAt(step) };
}

