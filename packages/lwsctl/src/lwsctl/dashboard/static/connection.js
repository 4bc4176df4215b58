// What this page follows on the stream that all pages of the browser share; nothing while it is hidden or left.
const followed = new Map(); // by key
const waiting = new Set(); // to be followed when the page is shown
const port = connect();
let count = 0;

port.onmessage = ({ data: { key, ...message } }) => {
  if (key === undefined) for (const one of [...followed.values(), ...waiting]) one.take(message);
  const topic = followed.get(key);
  if (!topic) return;
  topic.from = message.from ?? topic.from;
  topic.take(message);
};
document.addEventListener("visibilitychange", () => (document.hidden ? pause() : resume()));
addEventListener("pagehide", pause);
addEventListener("pageshow", resume);

// Follows an address since a state: `take` gets each event. Returns a function that ends it.
export function follow(of, from, take) {
  const topic = { of, from, take, key: "" };
  waiting.add(topic);
  resume();
  return () => {
    waiting.delete(topic);
    end(topic);
  };
}

function resume() {
  if (document.hidden) return;
  for (const topic of waiting) {
    topic.key = String(++count);
    followed.set(topic.key, topic);
    port.postMessage({ key: topic.key, of: topic.of, from: topic.from });
  }
  waiting.clear();
}

function pause() {
  for (const topic of followed.values()) {
    end(topic);
    waiting.add(topic);
  }
}

function end(topic) {
  if (followed.delete(topic.key)) port.postMessage({ key: topic.key });
}

function connect() {
  if (globalThis.SharedWorker) return new SharedWorker(new URL("worker.js", import.meta.url), { type: "module" }).port;
  const { port1, port2 } = new MessageChannel();
  import("./worker.js").then(({ serve }) => serve(port2));
  return port1;
}
