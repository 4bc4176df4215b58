// The differences of this page: applied to its regions, in the order in which they come.
import { follow } from "./connection.js";
import { morph } from "./morph.js";

const SILENCE = 12; // seconds without a sign of life of the server
const live = document.getElementById("live");
const changed = [];
const pulse = document.getElementById("pulse");
let answered = Date.now();
let isLost = false;

// Calls `callback` with the set of changed ids after each change of the page.
export function onChange(callback) {
  changed.push(callback);
}

export function start() {
  const [base, address] = [document.baseURI, location.href.split("#")[0]];
  follow(address.slice(base.length), document.body.dataset.ident, take);
  setInterval(beat, 1000);
}

function take({ name, data }) {
  if (name === "lost") {
    isLost = true;
    setTimeout(complain, 1200);
    setTimeout(askWhy, 1200);
    return;
  }
  heard();
  if (name === "refused") notice(`⚠ ${data}`);
  if (name === "begin") notice("");
  if (name === "difference") change(apply, data);
  if (name === "whole") change(replaceAll, data);
}

// A shared dashboard refuses a user whose login has ended; the page continues after a login in another tab.
async function askWhy() {
  if (!isLost) return;
  const answer = await fetch("search").catch(() => null);
  if (answer?.status !== 401) return;
  const link = Object.assign(document.createElement("a"), { href: "login", target: "_blank", textContent: "log in again" });
  notice("⚠ Your login has expired: ");
  document.getElementById("connection").append(link);
}

// A stream that is opened again at once is no trouble.
function complain() {
  beat();
  if (isLost && !document.getElementById("connection")) notice("⚠ The dashboard does not respond, so this page might be outdated. Reconnecting …");
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
  if (seconds > SILENCE && !document.hidden) isLost = true;
  const isOld = document.getElementById("trouble-text") !== null;
  pulse.className = `pulse ${isLost ? "lost" : isOld ? "" : "live"}`;
  pulse.textContent = isLost ? `✕ Not connected, ${age} old` : isOld ? "⚠ Outdated: no response from the API server" : `● Live ${age}`;
}

function change(use, data) {
  const kept = focused();
  const ids = use(JSON.parse(data));
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
    if (old) morph(old, fresh);
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
    const fresh = target.cloneNode(false);
    fresh.append(template.content);
    morph(target, fresh);
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
