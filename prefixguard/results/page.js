"use strict";
(() => {
// Reading a run step by step: the page is complete without this, which only brings a step's row next to its ribbon.

function rowOf(card, step) {
  for (const row of card.querySelectorAll("details tbody tr")) {
    if (row.firstElementChild.textContent === step) return row;
  }
  return null;
}

function show(figure, cell) {
  for (const other of figure.querySelectorAll(".cell.on")) other.classList.remove("on");
  cell.classList.add("on");
  const card = figure.closest(".run");
  const row = rowOf(card, cell.dataset.step);
  const said = figure.querySelector(".said");
  const title = cell.querySelector("title").textContent;
  const parts = row ? [...row.cells].slice(5).map((entry) => entry.textContent).filter(Boolean) : [];
  said.textContent = [title, ...parts].join(" · ");
}

for (const figure of document.querySelectorAll("figure.wide")) {
  const cells = [...figure.querySelectorAll(".cell")];
  const box = figure.querySelector(".box");
  let at = -1;
  const go = (place) => {
    at = Math.max(0, Math.min(cells.length - 1, place));
    show(figure, cells[at]);
  };
  for (const kind of ["pointerover", "click"]) {
    box.addEventListener(kind, (event) => {
      const cell = event.target.closest(".cell");
      if (cell) go(cells.indexOf(cell));
    });
  }
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    go(at < 0 && step < 0 ? cells.length - 1 : at + step);
    // Only the box scrolls, never the page.
    const [seen, cell] = [box.getBoundingClientRect(), cells[at].getBoundingClientRect()];
    if (cell.left < seen.left || cell.right > seen.right) box.scrollLeft += cell.left - seen.left - seen.width / 2;
    event.preventDefault();
  });
}

window.addEventListener("beforeprint", () => {
  // The tables of single runs are long: those that the reader opened are printed.
  for (const closed of document.querySelectorAll("details")) if (!closed.closest(".run")) closed.open = true;
});
})();
