// The one stream of a browser: a shared worker holds it for all pages, or the page itself where there are no shared workers.
// A browser opens six connections to a server, so a stream for each page would block further pages.
const SILENCE = 12_000; // milliseconds: two signs of life were missed, so the connection hangs, as after sleep
const topics = new Map(); // by key: the port of its page, the page's own key, its address, and the state that the page has
const known = new Set(); // the keys that the server has
let source = null;
let stream = ""; // the number of the open stream
let requests = Promise.resolve();
let heard = 0;
let pages = 0;

globalThis.onconnect = (event) => serve(event.ports[0]);
setInterval(() => source && Date.now() - heard > SILENCE && fail(500), 1000);

export function serve(port) {
  const own = ++pages;
  port.onmessage = ({ data: { key, of, from } }) => {
    if (of === undefined) topics.delete(`${own}-${key}`);
    else topics.set(`${own}-${key}`, { port, key, of, from });
    sync();
  };
}

function sync() {
  if (!topics.size) return shut();
  if (!source) return open();
  if (!stream) return;
  for (const [id, topic] of topics) if (!known.has(id)) begin(id, topic), ask(id, topic);
  for (const id of known) if (!topics.has(id)) known.delete(id), ask(id);
}

function begin(id, topic) {
  known.add(id);
  topic.port.postMessage({ key: topic.key, name: "begin" });
}

// Requests follow one another, so that the end of a topic does not overtake its beginning.
function ask(id, topic) {
  requests = requests.then(async () => {
    const query = topic ? new URLSearchParams({ of: topic.of, from: topic.from }) : "";
    const answer = await fetch(place(`stream/${stream}/${id}?${query}`)).catch(() => null);
    if (answer?.status === 410) fail(500);
    else if (topic && answer && !answer.ok) topic.port.postMessage({ key: topic.key, name: "refused", data: await answer.text() });
  });
}

function open() {
  const [[id, topic]] = topics;
  const mine = (source = new EventSource(place(`stream?${new URLSearchParams({ key: id, of: topic.of, from: topic.from })}`)));
  const on = (name, use) => mine.addEventListener(name, (event) => mine === source && ((heard = Date.now()), use(event)));
  heard = Date.now();
  on("opened", ({ data }) => {
    stream = data;
    if (topics.has(id)) begin(id, topic);
    else known.add(id);
    sync();
  });
  on("beat", () => announce({ name: "beat" }));
  for (const name of ["difference", "whole", "lines", "end"]) on(name, pass);
  mine.addEventListener("error", () => mine === source && fail(mine.readyState === EventSource.CLOSED ? 3000 : 500));
}

// The first line of an event is the key of its topic.
function pass({ type, data, lastEventId }) {
  const at = data.indexOf("\n");
  const topic = topics.get(data.slice(0, at));
  if (!topic) return;
  if (type === "difference" || type === "whole") topic.from = lastEventId;
  topic.port.postMessage({ key: topic.key, name: type, data: data.slice(at + 1), from: topic.from });
}

// The browser gives up after a refusal, so the stream is always opened again here.
function fail(pause) {
  shut();
  announce({ name: "lost" });
  setTimeout(sync, pause);
}

function shut() {
  source?.close();
  source = null;
  stream = "";
  known.clear();
}

function announce(message) {
  for (const port of new Set([...topics.values()].map((topic) => topic.port))) port.postMessage(message);
}

function place(path) {
  return new URL(`../../${path}`, import.meta.url); // above `static/VERSION`
}
