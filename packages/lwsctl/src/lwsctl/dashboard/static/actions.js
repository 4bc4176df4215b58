// Actions: a dialog shows the exact command and its dry run; only what was seen there is done, by a second request.
import { onChange } from "./stream.js";

const token = document.body.dataset.action;
const number = document.getElementById("scale-groups");
let offered = ""; // the number of groups that was filled in last
let isBusy = false;

export function start() {
  if (!token) return;
  offer();
  onChange(offer);
  document.getElementById("scale-role")?.addEventListener("change", fill);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-verb]");
    if (button && !isBusy) prepare(button);
  });
  // The panel of a rank offers actions on its group.
  document.addEventListener("shown", ({ target }) => {
    for (const one of target.querySelectorAll("button[data-verb]")) one.hidden = false;
  });
}

// Shows the actions that apply to the object as it is now; none for an object that does not exist.
function offer() {
  const section = document.getElementById("actions");
  if (!section) return;
  const verbs = (document.getElementById("title")?.dataset.actions ?? "").split(" ").filter(Boolean);
  section.hidden = !verbs.length;
  for (const one of section.querySelectorAll("[data-verb], [data-for]")) {
    one.hidden = !(one.dataset.verb ?? one.dataset.for).split(" ").some((verb) => verbs.includes(verb));
  }
  if (number && (number.value === offered || !offered)) fill();
}

// Fills in the current number of groups, unless the user has written another one.
function fill() {
  const role = document.getElementById("scale-role")?.selectedOptions[0];
  offered = number.value = (role ?? document.getElementById("title"))?.dataset.groups ?? "0";
}

async function prepare(button) {
  const { verb, namespace, name } = button.dataset;
  const asked = { verb, namespace, name, group: button.dataset.group };
  if (verb.startsWith("scale")) {
    asked.role = document.getElementById("scale-role")?.value;
    asked.groups = number.value;
  }
  const trial = await busily(button, "Checking …", () => send({ ...asked, confirmed: false }));
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Action");
  const title = part("h2", trial.command ?? "This action is not possible");
  const text = part("pre", trial.text ?? trial.error);
  text.tabIndex = 0;
  const run = part("button", "Run this command");
  const leave = part("button", "Cancel");
  run.hidden = !trial.done;
  leave.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => (dialog.remove(), button.focus()));
  run.addEventListener("click", async () => {
    const done = await busily(run, "Running …", () => send({ ...asked, confirmed: true }));
    text.textContent = done.text ?? done.error;
    run.hidden = true;
    leave.textContent = "Close";
    leave.focus();
  });
  const warning = part("p", trial.done && trial.ends ? `⚠ ${trial.ends}` : "");
  warning.className = "ends";
  dialog.append(title, warning, part("p", "Result of the dry run on the server:"), text, run, leave);
  document.body.append(dialog);
  dialog.showModal();
}

// Shows on the button that its request runs; meanwhile no other action begins.
async function busily(button, words, work) {
  const before = button.textContent;
  isBusy = button.disabled = true;
  button.textContent = words;
  try {
    return await work();
  } finally {
    isBusy = button.disabled = false;
    button.textContent = before;
  }
}

function part(name, text) {
  const one = document.createElement(name);
  if (name === "button") one.type = "button";
  one.textContent = text;
  return one;
}

async function send(content) {
  try {
    const answer = await fetch("act", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Dashboard-Token": token },
      body: JSON.stringify(content),
    });
    return answer.headers.get("Content-Type")?.startsWith("application/json") ? await answer.json() : { error: await answer.text() };
  } catch (error) {
    return { error: error.message };
  }
}
