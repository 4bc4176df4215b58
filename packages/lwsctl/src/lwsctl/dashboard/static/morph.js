// Makes one element like another with as few changes as possible, so that the focus and the selection of text stay.
const OWN = new Set(["aria-selected", "tabindex", "data-ago", "data-words", "hidden", "open"]); // of scripts and of the browser

export function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName || (old.id ?? "") !== (fresh.id ?? "")) return old.replaceWith(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE) return write(old, fresh.data);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !OWN.has(name)) old.removeAttribute(name);
  const [mine, others] = [[...old.childNodes], [...fresh.childNodes]];
  for (const [at, node] of others.entries()) {
    if (mine[at]) morph(mine[at], node);
    else old.append(node);
  }
  for (const node of mine.slice(others.length)) node.remove();
}

// Only the characters that differ are replaced: a selection beside them stays.
function write(node, text) {
  const { data } = node;
  if (data === text) return;
  const most = Math.min(data.length, text.length);
  let begin = 0;
  while (begin < most && data[begin] === text[begin]) begin++;
  let end = 0;
  while (end < most - begin && data.at(-1 - end) === text.at(-1 - end)) end++;
  node.replaceData(begin, data.length - begin - end, text.slice(begin, text.length - end));
}
