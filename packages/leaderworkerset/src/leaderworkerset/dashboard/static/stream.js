// The stream of differences of this page: applied to its regions, resumed where it broke, closed while nobody looks.
const live = document.getElementById("live");
const changed = [];
const pulse = document.getElementById("pulse");
let answered = Date.now();
let isLost = false;
let state = document.body.dataset.ident;
let source = null;

// Calls `callback` with the set of changed ids after each change of the page.
export function onChange(callback) {
  changed.push(callback);
}

export function start() {
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  if (!document.hidden) open();
  setInterval(beat, 1000);
}

function open() {
  if (source) return;
  const address = new URL(location.href);
  address.searchParams.set("stream", state);
  source = new EventSource(address);
  source.addEventListener("difference", (event) => take(event, apply));
  source.addEventListener("whole", (event) => take(event, replaceAll));
  source.addEventListener("beat", heard);
  source.addEventListener("open", () => (heard(), notice("")));
  source.addEventListener("error", () => {
    isLost = true;
    setTimeout(complain, 1200);
    if (source.readyState === EventSource.CLOSED) {
      // The browser gives up after a refusal, so it is tried again here.
      close();
      askWhy();
      setTimeout(() => document.hidden || open(), 3000);
    }
  });
}

// A shared dashboard refuses a user whose login has ended; the page continues after a login in another tab.
async function askWhy() {
  const answer = await fetch("search").catch(() => null);
  if (answer?.status !== 401) return;
  const link = Object.assign(document.createElement("a"), { href: "login", target: "_blank", textContent: "log in again" });
  notice("⚠ Your login has ended: ");
  document.getElementById("connection").append(link);
}

// A stream that is opened again at once is no trouble.
function complain() {
  beat();
  if (isLost && !document.getElementById("connection")) notice("⚠ The dashboard does not answer; what is shown may be old. It is tried again.");
}

function heard() {
  answered = Date.now();
  isLost = false;
  beat();
}

// The live sign: whether this page is current, and how old the last answer is.
function beat() {
  const seconds = Math.round((Date.now() - answered) / 1000);
  const age = seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
  // Two heartbeats were missed: the connection hangs, as after sleep.
  if (seconds > 40 && source && !document.hidden) {
    isLost = true;
    close();
    open();
  }
  const isOld = document.getElementById("trouble-text") !== null;
  pulse.className = isLost ? "lost" : isOld ? "" : "live";
  pulse.textContent = isLost ? `✕ not connected, ${age} old` : isOld ? "⚠ old: no answer from the API server" : `● live, ${age}`;
}

function close() {
  source?.close();
  source = null;
}

function take(event, use) {
  state = event.lastEventId;
  heard();
  const kept = focused();
  const ids = use(JSON.parse(event.data));
  restore(kept);
  for (const callback of changed) callback(ids);
}

function apply(difference) {
  const { put = [], gone = [], order = {}, say = [] } = difference;
  const ids = new Set(gone);
  for (const id of gone) document.getElementById(id)?.remove();
  for (const [region, id, html] of put) {
    ids.add(id);
    const fresh = element(html);
    const old = document.getElementById(id);
    if (old) old.replaceWith(fresh);
    else document.getElementById(region)?.append(fresh);
  }
  for (const [region, keys] of Object.entries(order)) arrange(document.getElementById(region), keys);
  if (say.length) live.textContent = say.join(". ");
  return ids;
}

function replaceAll({ regions }) {
  const ids = new Set();
  for (const [region, html] of Object.entries(regions)) {
    const target = document.getElementById(region);
    if (!target) continue;
    const template = document.createElement("template");
    template.innerHTML = html;
    target.replaceChildren(template.content);
    for (const one of target.children) ids.add(one.id);
  }
  return ids;
}

// Puts children into an order with as few moves as the order allows from its beginning.
function arrange(region, order) {
  let next = region?.firstElementChild;
  for (const id of order) {
    if (next?.id === id) {
      next = next.nextElementSibling;
      continue;
    }
    const child = document.getElementById(id);
    if (child) region.insertBefore(child, next);
  }
}

function element(html) {
  // The HTML is the server's, which escapes every text.
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

function focused() {
  const one = document.activeElement;
  return one && one !== document.body ? { id: one.id, tabIndex: one.tabIndex } : null;
}

function restore(kept) {
  if (!kept?.id || document.activeElement?.id === kept.id) return;
  const one = document.getElementById(kept.id);
  if (one) {
    one.tabIndex = kept.tabIndex;
    one.focus({ preventScroll: true });
  }
}

function notice(text) {
  const trouble = document.getElementById("trouble");
  let own = document.getElementById("connection");
  if (!text) return own?.remove();
  if (!own) {
    own = document.createElement("p");
    own.id = "connection";
    trouble.append(own);
  }
  own.textContent = text;
}
