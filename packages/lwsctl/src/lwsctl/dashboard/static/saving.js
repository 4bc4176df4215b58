// Copies a page as text, and saves it as one file, both as the server writes them.
export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button) write(button, async () => button.dataset.copy);
  });
  document.getElementById("copy").addEventListener("click", copy);
  document.getElementById("save-page")?.addEventListener("click", () => {
    const address = new URL(location.href);
    address.searchParams.set("as", "file");
    download(address.href, `${document.title.replace(/[^\w.-]+/g, "-")}.html`);
  });
}

export function download(href, name) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

function copy(event) {
  const address = new URL(location.href);
  address.searchParams.set("as", "text");
  return write(event.target, async () => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.text();
  });
}

// Writes a text to the clipboard, and shows on the button whether that was possible.
async function write(button, read) {
  const words = button.dataset.words ?? (button.dataset.words = button.textContent);
  try {
    await navigator.clipboard.writeText(await read());
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying failed";
  }
  setTimeout(() => (button.textContent = words), 2000);
}
