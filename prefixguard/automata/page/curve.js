// The risk curve of a run: both risks after every step, the teacher's, and the thresholds.

const FRAME = { left: 26, right: 8, top: 8, bottom: 140, strip: 146, foot: 156, words: 170 };
const NEAR = 13; // pixels between two thresholds at which their names would overprint each other

// Which line is which.
function strokes(run) {
  const kinds = [["outcome", "outcome risk"], ["imminent", "imminent risk"]];
  if (run.steps.some((step) => step.teacher !== null)) kinds.push(["teacher", "teacher's outcome risk"]);
  const sample = (kind) =>
    drawn(
      "svg",
      { viewBox: "0 0 22 8", "aria-hidden": "true" },
      drawn("line", { class: kind, x1: 1, x2: 21, y1: 4, y2: 4 }),
    );
  byId("strokes").replaceChildren(...kinds.map(([kind, text]) => make("span", {}, sample(kind), text)));
}

// Draws the curve of a run that has come to a step (0: before the first); go(step) is called on a click.
function drawCurve(run, now, go) {
  const curve = byId("curve");
  const steps = run.steps;
  const right = Math.max(curve.clientWidth, 120) - FRAME.right;
  const width = (right - FRAME.left) / Math.max(steps.length, 1);
  const x = (step) => FRAME.left + width * (step - 0.5);
  const y = (value) => FRAME.bottom - (FRAME.bottom - FRAME.top) * value;
  const across = (kind, value) => drawn("line", { class: kind, x1: FRAME.left, x2: right, y1: y(value), y2: y(value) });
  const write = (text, at, height, anchor) => drawn("text", { x: at, y: height, "text-anchor": anchor }, text);

  function line(kind, from, to) {
    let path = "";
    let pen = "M"; // lifted where there is no risk
    for (let step = Math.max(from, 1); step <= to; step += 1) {
      const value = steps[step - 1][kind];
      if (value !== null) path += `${pen}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = value === null ? "M" : "L";
    }
    return path;
  }

  const axis = [[0, "0"], [0.5, ".5"], [1, "1"]].map(([value, text]) =>
    [across("axis", value), write(text, FRAME.left - 4, y(value) + 3, "end")]);
  const watchCounts = data.alarm === null || data.watch < data.alarm;
  // Where both thresholds are near each other, the lower one is named under its line.
  const near = data.alarm !== null && Math.abs(y(data.alarm) - y(data.watch)) < NEAR;
  const thresholds = [[watchCounts ? data.watch : null, "WATCH", near ? 10 : -3], [data.alarm, "ALARM", -3]]
    .filter(([threshold]) => threshold !== null)
    .map(([threshold, name, beside]) => {
      // At the lower edge there is no room under the line, at the upper edge none above it.
      const height = Math.min(Math.max(y(threshold) + beside, FRAME.top + 7), FRAME.bottom - 3);
      return [across("threshold", threshold), write(`${name} ${risk(threshold)}`, right, height, "end")];
    });
  const names = thresholds.map(([, name]) => name); // over the lines
  const lines = ["teacher", "imminent", "outcome"].map((kind) => [
    drawn("path", { class: kind, d: line(kind, 1, now) }),
    drawn("path", { class: `${kind} later`, d: line(kind, now, steps.length) }),
  ]);
  const cells = steps.map((step, at) =>
    drawn("rect", {
      class: "cell",
      x: (FRAME.left + at * width).toFixed(1),
      y: FRAME.strip,
      width: width.toFixed(2),
      height: FRAME.foot - FRAME.strip,
      fill: data.states[step.state].columns[columnOf(at + 1)].colour,
    }));
  // Under the strip, the steps at which the monitor says ALARM, whatever the risk is.
  const alarms = steps.map((step, at) =>
    step.level === "ALARM" && drawn("rect", {
      class: "said-alarm",
      x: (FRAME.left + at * width).toFixed(1),
      y: FRAME.foot + 1,
      width: width.toFixed(2),
      height: 2.5,
    }));
  const unseen = steps.map((step, at) =>
    step.unseen && step.outcome !== null
    && drawn("circle", { class: "unseen", cx: x(at + 1), cy: y(step.outcome), r: 3.2 }));

  const sounded = steps.findIndex((step) => step.level === "ALARM");
  const flag = [];
  if (sounded >= 0 && steps[sounded].outcome !== null) {
    const [at, height] = [x(sounded + 1), Math.max(y(steps[sounded].outcome), FRAME.top + 8)];
    flag.push(drawn("polygon", {
      class: "alarm",
      points: `${at - 5},${height - 14} ${at + 5},${height - 14} ${at},${height - 5}`,
    }));
  }
  const cursor = [];
  if (now > 0) {
    const value = steps[now - 1].outcome;
    cursor.push(drawn("line", { class: "cursor", x1: x(now), x2: x(now), y1: FRAME.top, y2: FRAME.foot }));
    if (value !== null) cursor.push(drawn("circle", { class: "dot", cx: x(now), cy: y(value), r: 4.5 }));
  }
  const end = run.kind;
  const words = [
    write("step 1", FRAME.left, FRAME.words, "start"),
    write(`step ${steps.length}: ${end}`, right, FRAME.words, "end"),
  ];
  const parts = [axis, thresholds, lines, names, cells, alarms, unseen, flag, cursor, words].flat(Infinity);
  curve.replaceChildren(...parts.filter(Boolean));
  curve.onclick = (event) => {
    const at = event.clientX - curve.getBoundingClientRect().left;
    go(Math.ceil((at - FRAME.left) / width));
  };
}

