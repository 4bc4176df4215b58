// The search: rows of this page without the words are hidden, and a list shows what has them on any page.
import { onChange } from "./stream.js";

const search = document.getElementById("search");
const results = document.getElementById("results");
let asked = 0;
let waiting = 0;
let isFiltered = false;

export function start() {
  search.value = new URLSearchParams(location.search).get("find") ?? "";
  filter();
  onChange(filter);
  search.addEventListener("input", () => {
    filter();
    drop();
    clearTimeout(waiting);
    waiting = setTimeout(ask, 120);
  });
  search.addEventListener("focus", ask);
  for (const one of [search, results]) one.addEventListener("keydown", press);
  document.addEventListener("focusin", (event) => event.target.closest(".find") || close());
  document.addEventListener("click", (event) => event.target.closest(".find") || close());
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length && !isFiltered) return;
  isFiltered = words.length > 0;
  for (const one of document.querySelectorAll("#main [data-find]")) {
    const text = words.length ? `${one.dataset.find} ${one.textContent}`.toLowerCase() : "";
    one.hidden = !words.every((word) => text.includes(word));
  }
}

async function ask() {
  const mine = ++asked;
  try {
    const answer = await fetch(`search?${new URLSearchParams({ q: search.value })}`);
    const html = answer.ok ? await answer.text() : "";
    if (mine !== asked) return;
    results.innerHTML = html; // the server's, which escapes every text
    results.hidden = !html;
  } catch {
    if (mine === asked) results.replaceChildren(); // the stream shows that the server does not answer
  }
}

// Removes the hits that do not have the words, until the server answers: Enter opens the first hit.
function drop() {
  asked++;
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const one of results.querySelectorAll("li:has(a)")) {
    if (!words.every((word) => one.textContent.toLowerCase().includes(word))) one.remove();
  }
}

function close() {
  asked++;
  results.hidden = true;
}

function press(event) {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "Escape") {
    search.value = "";
    filter();
    close();
    document.getElementById("main").focus();
  } else if (event.key === "ArrowDown") links[Math.min(at + 1, links.length - 1)]?.focus();
  else if (event.key === "ArrowUp") (links[at - 1] ?? search).focus();
  else if (event.key === "Enter" && at < 0) links[0]?.click();
  else return;
  event.preventDefault();
}
