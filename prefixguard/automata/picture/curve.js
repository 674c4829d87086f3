// The risk curve of a run: both risks after every step, the teacher's, and the marks.

const FRAME = { left: 26, right: 8, top: 8, bottom: 140, strip: 146, foot: 156 };

function strokes(run) {
  const kinds = [["outcome", "outcome risk"], ["imminent", "imminent risk"]];
  if (run.steps.some((step) => step.teacher !== null)) kinds.push(["teacher", "teacher's outcome risk"]);
  byId("strokes").replaceChildren(...kinds.map(([kind, text]) =>
    make("span", {}, drawn("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, drawn("line", { class: kind, x1: 1, x2: 21, y1: 4, y2: 4 })), text)));
}

// Draws the curve of a run that has come to a step (0: before the first); go(step) is called on a click.
function drawCurve(run, now, go) {
  const steps = run.steps;
  const curve = byId("curve");
  const right = Math.max(curve.clientWidth, 120) - FRAME.right;
  const x = (step) => FRAME.left + ((right - FRAME.left) * (step - 0.5)) / steps.length;
  const y = (value) => FRAME.bottom - (FRAME.bottom - FRAME.top) * value;
  const line = (kind, from, to) => {
    let path = "";
    let pen = "M";
    for (let step = Math.max(from, 1); step <= to; step += 1) {
      const value = steps[step - 1][kind];
      if (value === null) pen = "M";
      else {
        path += `${pen}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = "L";
      }
    }
    return path;
  };
  const parts = [0, 0.5, 1].map((value) => [
    drawn("line", { class: "axis", x1: FRAME.left, x2: right, y1: y(value), y2: y(value) }),
    drawn("text", { x: FRAME.left - 4, y: y(value) + 3, "text-anchor": "end" }, value === 0 ? "0" : value === 1 ? "1" : ".5"),
  ]).flat();
  for (const [mark, name] of [[data.watch, "WATCH"], [data.alarm, "ALARM"]]) {
    if (mark === null || (name === "WATCH" && data.alarm !== null && mark >= data.alarm)) continue;
    parts.push(drawn("line", { class: "mark", x1: FRAME.left, x2: right, y1: y(mark), y2: y(mark) }),
      drawn("text", { x: right, y: y(mark) - 3, "text-anchor": "end" }, `${name} ${risk(mark)}`));
  }
  for (const kind of ["teacher", "imminent", "outcome"]) {
    parts.push(drawn("path", { class: kind, d: line(kind, 1, now) }), drawn("path", { class: `${kind} later`, d: line(kind, now, steps.length) }));
  }
  const width = (right - FRAME.left) / steps.length;
  steps.forEach((step, at) => {
    const colour = data.states[step.state].colour;
    parts.push(drawn("rect", { class: "cell", x: (FRAME.left + at * width).toFixed(1), y: FRAME.strip, width: width.toFixed(2), height: FRAME.foot - FRAME.strip, fill: colour }));
    if (step.unseen && step.outcome !== null) parts.push(drawn("circle", { class: "unseen", cx: x(at + 1), cy: y(step.outcome), r: 3.2 }));
  });
  const first = steps.findIndex((step) => step.level === "ALARM");
  if (first >= 0 && steps[first].outcome !== null) {
    const [ax, ay] = [x(first + 1), y(steps[first].outcome)];
    parts.push(drawn("polygon", { class: "alarm", points: `${ax - 5},${ay - 5} ${ax + 5},${ay - 5} ${ax},${ay - 14}`, transform: `rotate(180 ${ax} ${ay - 9.5})` }));
  }
  if (now > 0) {
    parts.push(drawn("line", { class: "cursor", x1: x(now), x2: x(now), y1: FRAME.top, y2: FRAME.foot }));
    if (steps[now - 1].outcome !== null) parts.push(drawn("circle", { class: "dot", cx: x(now), cy: y(steps[now - 1].outcome), r: 4.5 }));
  }
  const end = run.failed === null ? "outcome not known" : run.failed ? "the run failed" : "the run succeeded";
  parts.push(drawn("text", { x: FRAME.left, y: 167 }, "step 1"), drawn("text", { x: right, y: 167, "text-anchor": "end" }, `step ${steps.length}: ${end}`));
  curve.replaceChildren(...parts);
  curve.onclick = (event) => {
    const rect = curve.getBoundingClientRect();
    const at = event.clientX - rect.left;
    go(Math.min(Math.max(Math.ceil(((at - FRAME.left) / (right - FRAME.left)) * steps.length), 0), steps.length));
  };
}

