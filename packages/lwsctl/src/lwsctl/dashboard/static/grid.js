// The grid of ranks: one cell is reachable by Tab, arrow keys move from it, Enter or a click shows a rank beside it.
import { morph } from "./morph.js";
import { onChange } from "./stream.js";

const grid = document.getElementById("grid");
const pane = document.getElementById("pane");
const hint = pane?.firstElementChild;
let shown = null;
let asked = 0;

export function start() {
  if (!grid) return;
  ready();
  grid.addEventListener("keydown", move);
  grid.addEventListener("focusin", (event) => reach(event.target.closest("td[id]")));
  grid.addEventListener("click", (event) => show(event.target.closest("td[id]")));
  document.getElementById("ills").addEventListener("click", (event) => {
    const cell = document.getElementById(`c/${event.target.closest("[data-rank]")?.dataset.rank}`);
    if (cell) event.preventDefault(), show(cell);
  });
  pane.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  const asked = new URLSearchParams(location.search).get("rank");
  if (asked) show(document.getElementById(`c/${asked}`));
  else select(document.getElementById(`c/${document.getElementById("title")?.dataset.failed}`));
  onChange((ids) => {
    ready();
    if (!shown) return;
    const cell = document.getElementById(`c/${shown}`);
    cell?.setAttribute("aria-selected", "true");
    if ([...ids].some((id) => document.getElementById(id)?.contains(cell))) fill(shown);
  });
}

// Lets Tab reach one cell, the last one that had the focus or the first.
function ready() {
  if (!grid.querySelector("td[tabindex='0']")) reach(grid.querySelector("td[id]"));
}

function reach(cell) {
  if (!cell || cell.tabIndex === 0) return;
  for (const one of grid.querySelectorAll("td[tabindex='0']")) one.removeAttribute("tabindex");
  cell.tabIndex = 0;
}

function focus(cell) {
  reach(cell);
  cell?.focus();
}

function move(event) {
  const cell = event.target.closest("td[id]");
  if (!cell) return;
  const target = neighbor(cell, event.key, event.ctrlKey);
  if (event.key === "Enter" || event.key === " ") show(cell);
  else if (event.key === "Escape") hide();
  else if (target) focus(target);
  else return;
  event.preventDefault();
}

function neighbor(cell, key, far) {
  const row = cell.parentElement;
  const cells = [...row.querySelectorAll("td[id]")];
  const at = cells.indexOf(cell);
  const rows = [...grid.querySelectorAll("tbody tr:not([hidden])")].filter((one) => one.querySelector("td[id]"));
  const inRow = (other) => other && (other.querySelectorAll("td[id]")[at] ?? other.querySelector("td[id]:last-of-type"));
  const here = rows.indexOf(row);
  switch (key) {
    case "ArrowLeft": return cells[at - 1];
    case "ArrowRight": return cells[at + 1];
    case "ArrowUp": return inRow(nearest(rows, row, -1));
    case "ArrowDown": return inRow(nearest(rows, row, 1));
    case "PageUp": return inRow(rows[Math.max(here - 10, 0)]);
    case "PageDown": return inRow(rows[Math.min(here + 10, rows.length - 1)]);
    case "Home": return far ? inRow(rows[0]) : cells[0];
    case "End": return far ? inRow(rows.at(-1)) : cells.at(-1);
    default: return null;
  }
}

// Rows stand next to each other, and those with a problem first: the nearest one above or below is found by where it is.
function nearest(rows, row, sign) {
  const middle = row.offsetLeft + row.offsetWidth / 2;
  const center = row.offsetWidth > grid.offsetWidth * 0.9 ? row.offsetLeft + 1 : middle;
  const far = (other) => sign * (other.offsetTop - row.offsetTop);
  return rows
    .filter((other) => far(other) > 0 && other.offsetLeft <= center && other.offsetLeft + other.offsetWidth > center)
    .reduce((best, other) => (best && far(best) <= far(other) ? best : other), null);
}

function show(cell) {
  if (!cell) return;
  select(cell).then(() => pane.focus());
  remember();
}

// Shows a rank without a move of the focus: the one that failed, when the page opens.
async function select(cell) {
  if (!cell) return;
  for (const one of grid.querySelectorAll("[aria-selected]")) one.removeAttribute("aria-selected");
  cell.setAttribute("aria-selected", "true");
  shown = cell.id.slice(2);
  await fill(shown);
}

function hide() {
  pane.replaceChildren(hint);
  focus(document.getElementById(`c/${shown}`));
  for (const one of grid.querySelectorAll("[aria-selected]")) one.removeAttribute("aria-selected");
  shown = null;
  remember();
}

// Keeps the chosen rank in the address, so that a link leads to it.
function remember() {
  const address = new URL(location.href);
  if (shown) address.searchParams.set("rank", shown);
  else address.searchParams.delete("rank");
  history.replaceState(null, "", address);
}

async function fill(place) {
  const mine = ++asked;
  let html = "";
  try {
    const answer = await fetch(`${grid.dataset.pane}/${place}`);
    html = await answer.text();
    if (!answer.ok) html = "";
  } catch {
    // The stream shows that the server does not answer.
  }
  if (mine !== asked || shown !== place) return;
  const fresh = pane.cloneNode(false);
  if (html) fresh.innerHTML = html; // the server's, which escapes every text
  else fresh.textContent = `${place}: no data could be read`;
  morph(pane, fresh);
  pane.dispatchEvent(new CustomEvent("shown", { bubbles: true, detail: place }));
}
