// Actions: a dialog shows the exact command and its dry run; only what was seen there is done, by a second request.
import { onChange } from "./stream.js";

const token = document.body.dataset.action;

export function start() {
  if (!token) return;
  const { groups } = document.getElementById("title")?.dataset ?? {};
  if (groups) document.getElementById("scale-groups").value = groups;
  offer();
  onChange(offer);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-verb]");
    if (button) prepare(button);
  });
  // The pane of a rank offers to restart its group.
  document.addEventListener("shown", (event) => {
    const group = event.detail.split("/")[0];
    for (const [verb, word] of [["restart-group", "Restart"], ["recover-group", "Recover"]]) {
      const button = part("button", `${word} group ${group} …`);
      Object.assign(button.dataset, { ...document.querySelector("button[data-verb]").dataset, verb, group });
      event.target.append(button);
    }
  });
}

// Offers to pause or to resume, whichever applies. While paused nothing can be undone.
function offer() {
  const isPaused = document.getElementById("title")?.dataset.paused === "true";
  for (const one of document.querySelectorAll("button[data-verb=pause], button[data-verb=undo]")) one.hidden = isPaused;
  for (const one of document.querySelectorAll("button[data-verb=resume]")) one.hidden = !isPaused;
}

async function prepare(button) {
  const { verb, namespace, name } = button.dataset;
  const asked = { verb, namespace, name, group: button.dataset.group };
  if (verb.startsWith("scale")) {
    asked.role = document.getElementById("scale-role")?.value;
    asked.groups = document.getElementById("scale-groups").value;
  }
  const trial = await send({ ...asked, confirmed: false });
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Action");
  const title = part("h2", trial.command ?? "This cannot be done");
  const text = part("pre", trial.text ?? trial.error);
  text.tabIndex = 0;
  const run = part("button", "Run this command");
  const leave = part("button", "Cancel");
  run.hidden = !trial.done;
  leave.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => (dialog.remove(), button.focus()));
  run.addEventListener("click", async () => {
    run.disabled = true;
    const done = await send({ ...asked, confirmed: true });
    text.textContent = done.text ?? done.error;
    run.hidden = true;
    leave.textContent = "Close";
    leave.focus();
  });
  dialog.append(title, part("p", "This is what the server would do (dry run):"), text, run, leave);
  document.body.append(dialog);
  dialog.showModal();
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
