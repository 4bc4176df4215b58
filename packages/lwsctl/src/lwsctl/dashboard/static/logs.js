// Lines of several ranks, merged by time or side by side. Everything a program printed is shown as text, never as HTML.
import { follow } from "./connection.js";
import { download } from "./saving.js";

const MOST = 10_000; // lines that are kept; the oldest go first
const root = document.getElementById("logs");
const box = document.getElementById("lines");
const output = document.getElementById("log-state");
const words = document.getElementById("log-search");
const lines = [];
let stop = () => {};
let isBeside = false;
let follows = true;
let wanted = null; // the first error of all ranks, until its line is there
let tail = 500; // past lines of each rank

export function start() {
  if (!root) return;
  const { failed } = document.getElementById("title").dataset;
  if (failed && !chosen().length) remember([failed]);
  const field = document.getElementById("choice");
  field.addEventListener("change", () => {
    choose([...chosen(), ...field.value.split(/[\s,]+/).filter(Boolean)]);
    field.value = "";
  });
  document.getElementById("chips").addEventListener("click", ({ target: { dataset } }) => {
    if (dataset.drop) choose(chosen().filter((one) => one !== dataset.drop));
    if (dataset.add) choose([...chosen(), dataset.add]);
  });
  button("layout", (on) => ((isBeside = on), paint()));
  button("follow", (on) => ((follows = on), on && toEnd()));
  document.getElementById("earlier").addEventListener("click", earlier);
  document.getElementById("first-error").addEventListener("click", firstError);
  document.getElementById("save").addEventListener("click", save);
  words.addEventListener("input", paint);
  read();
}

// The chosen ranks are in the address; none chosen: every leader.
function chosen() {
  return new URLSearchParams(location.search).getAll("rank");
}

function choose(places) {
  remember(new Set(places));
  read();
}

function chips() {
  const own = chosen().map((place) => chip(`${place} ×`, { drop: place }, `Remove ${place}`));
  const roles = document.getElementById("title").dataset.roles?.split(" ") ?? [];
  const all = [["*/0", "leaders"], ["failed", "failed ranks"], ...roles.map((one) => [one + "/*/*", one])];
  const more = all.filter(([one]) => !chosen().includes(one));
  const offers = more.map(([one, words]) => chip(`+ ${words}`, { add: one }, `Add ${words}`));
  const none = Object.assign(document.createElement("span"), { className: "hint", textContent: own.length ? "" : "All leaders" });
  document.getElementById("chips").replaceChildren(none, ...own, ...offers);
}

function chip(text, data, label) {
  const one = Object.assign(document.createElement("button"), { type: "button", textContent: text, title: label, ariaLabel: label });
  Object.assign(one.dataset, data);
  if (data.drop) one.ariaPressed = "true";
  return one;
}

function earlier() {
  tail = Math.min(tail * 4, 8000);
  if (follows) document.getElementById("follow").click();
  read();
}

function button(id, use) {
  const one = document.getElementById(id);
  one.addEventListener("click", () => {
    const on = one.getAttribute("aria-pressed") !== "true";
    one.setAttribute("aria-pressed", on);
    use(on);
  });
}

function remember(places) {
  const address = new URL(location.href);
  address.searchParams.delete("rank");
  for (const place of places) address.searchParams.append("rank", place);
  history.replaceState(null, "", address);
}

// Follows the chosen ranks. When the stream is opened again, lines that are here already are not added again.
function read() {
  stop();
  lines.length = 0;
  output.textContent = "";
  chips();
  paint();
  const query = new URLSearchParams([...chosen().map((place) => ["rank", place]), ["tail", tail]]);
  const newest = new Map();
  let before = new Map();
  stop = follow(`${root.dataset.source}?${query}`, "", ({ name, data }) => {
    if (name === "begin") before = new Map(newest);
    if (name === "end") output.textContent = "The stream was closed";
    if (name === "refused") output.textContent = data;
    if (name !== "lines") return;
    const found = data.split("\n").map((one) => JSON.parse(one)).filter((one) => !(one.time <= before.get(one.rank)));
    for (const one of found) if (one.rank) newest.set(one.rank, one.time);
    add(found);
  });
}

function add(found) {
  if (!found.length) return;
  const newest = lines.at(-1)?.time ?? "";
  const isLater = found.every((one, at) => (one.time ?? newest) >= (at ? (found[at - 1].time ?? newest) : newest));
  lines.push(...found);
  const isFull = lines.length > MOST;
  if (!isLater) lines.sort((one, other) => ((one.time ?? "") < (other.time ?? "") ? -1 : 1));
  if (isFull) lines.splice(0, lines.length - MOST);
  if (isLater && !isFull && !isBeside) box.append(...found.filter(matches).map(paragraph));
  else paint();
  if (!point()) output.textContent = `${lines.length} ${lines.length === 1 ? "line" : "lines"}`;
  if (follows) toEnd();
}

function matches(line) {
  return !words.value || (line.text ?? line.note).toLowerCase().includes(words.value.toLowerCase());
}

function paragraph(line) {
  const one = document.createElement("p");
  if (line.note !== undefined) {
    one.className = "note";
    one.textContent = line.note;
    return one;
  }
  if (line.error) one.className = "error";
  one.dataset.at = line.rank + line.time;
  const place = document.createElement("b");
  place.textContent = isBeside ? `${line.time.slice(11, 19)} ` : `${line.time.slice(11, 23).replace("Z", "")} ${line.rank} `;
  one.append(place, line.text);
  return one;
}

function paint() {
  box.classList.toggle("columns", isBeside);
  const shown = lines.filter(matches);
  if (!isBeside) return box.replaceChildren(...shown.map(paragraph));
  const columns = new Map();
  for (const line of shown) {
    const rank = line.rank ?? "notes";
    if (!columns.has(rank)) columns.set(rank, []);
    columns.get(rank).push(line);
  }
  box.replaceChildren(
    ...[...columns].map(([rank, own]) => {
      const section = document.createElement("section");
      const title = document.createElement("h2");
      title.textContent = rank;
      section.tabIndex = 0;
      section.append(title, ...own.map(paragraph));
      return section;
    }),
  );
}

// The first error of the chosen ranks, or of all: the server searches their logs. Its rank is chosen, too.
async function firstError() {
  output.textContent = "Searching all ranks …";
  const query = new URLSearchParams(chosen().map((place) => ["rank", place]));
  try {
    const answer = await fetch(`${document.getElementById("first-error").dataset.source}?${query}`);
    wanted = await answer.json();
  } catch (error) {
    wanted = null;
    return (output.textContent = `The search failed: ${error.message}`);
  }
  if (!wanted) return (output.textContent = "No errors found");
  document.getElementById("follow").setAttribute("aria-pressed", (follows = false));
  if (point()) return;
  if (chosen().includes(wanted.rank)) return (output.textContent = `${wanted.rank}: ${wanted.text}`);
  choose([...chosen(), wanted.rank]);
}

// Moves to the line that is wanted, if it is there.
function point() {
  const found = wanted && [...box.querySelectorAll("p.error")].find((one) => one.dataset.at === wanted.rank + wanted.time);
  if (!found) return false;
  output.textContent = `The first error of ${wanted.read} ranks: ${wanted.rank}`;
  wanted = null;
  found.tabIndex = -1;
  found.scrollIntoView({ block: "center" });
  found.focus();
  return true;
}

function toEnd() {
  for (const one of isBeside ? box.children : [box]) one.scrollTop = one.scrollHeight;
}

function save() {
  const text = lines.map((one) => (one.note === undefined ? `${one.time} ${one.rank} ${one.text}\n` : "")).join("");
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  download(address, "logs.txt");
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
