// Replay: a run walks along the graph, step by step.

const PAUSE = 900; // milliseconds between steps while it plays

function makeReplay(moved, links) {
  let run = 0;
  let step = 0;
  let timer = null;

  const outcome = (failed) => (failed === null ? "outcome not known" : failed ? "failed" : "succeeded");
  const title = (replay) => [replay.run_id, outcome(replay.failed), count(replay.steps.length, "step")].join(" · ");
  byId("replay-run").replaceChildren(
    ...data.replays.map((replay, at) => make("option", { value: at }, title(replay))),
  );

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
      return [make("p", {}, make("b", {}, "Before the first step"), where), make("p", {}, how)];
    }
    const now = current().steps[step - 1];
    const teacher = now.teacher === null ? "" : `, teacher's outcome risk ${risk(now.teacher)}`;
    const when = data.clock.length ? ` (clock: ${spans[columnOf(step)]})` : "";
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
        `${when}, imminent ${risk(now.imminent)}${teacher}`,
      ),
      now.text && make("div", { class: "said", tabindex: 0, "aria-label": "What happened in the step" }, quote(now.text)),
    ].filter(Boolean);
  }

  function show() {
    const steps = current().steps.length;
    const slider = byId("replay-slider");
    byId("replay-run").value = String(run);
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

