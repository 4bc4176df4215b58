// The keys of all pages, and the times that they show.
import { onChange } from "./stream.js";

const search = document.getElementById("search");
const help = document.getElementById("help");

export function start() {
  document.addEventListener("keydown", press);
  document.getElementById("help-button").addEventListener("click", () => help.showModal());
  document.getElementById("help-close").addEventListener("click", () => help.close());
  document.addEventListener("click", (event) => event.target.closest("#menu > div, #menu[open] > summary") || close());
  document.addEventListener("change", ({ target: { dataset, value } }) => {
    if (dataset.go) location.href = new URL(dataset.go + encodeURIComponent(value), document.baseURI).href;
  });
  times();
  setInterval(times, 10_000);
  onChange(times);
  document.addEventListener("shown", times); // of the pane of a rank
}

function close() {
  document.getElementById("menu").open = false;
}

function press(event) {
  if (event.key === "Escape") close();
  const isTyping = event.target.closest("input, textarea, dialog[open]");
  if (isTyping || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "/") search.focus();
  else if (event.key === "?") help.showModal();
  else if (event.key === "n") location.href = document.baseURI;
  else return;
  event.preventDefault();
}

// Shows how long ago a moment was, beside the time of day that the server wrote.
function times() {
  for (const one of document.querySelectorAll("time[datetime]")) {
    const seconds = Math.max(0, Math.round((Date.now() - Date.parse(one.dateTime)) / 1000));
    const [size, unit] = seconds < 120 ? [1, "s"] : seconds < 7200 ? [60, "m"] : seconds < 172800 ? [3600, "h"] : [86400, "d"];
    one.title = one.dateTime;
    one.dataset.ago = `${Math.floor(seconds / size)}${unit}`;
  }
}
