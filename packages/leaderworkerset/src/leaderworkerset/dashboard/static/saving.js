// Copies a page as text, and saves it as one file, both as the server writes them.
export function start() {
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

async function copy(event) {
  const address = new URL(location.href);
  address.searchParams.set("as", "text");
  const button = event.target;
  try {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(answer.statusText);
    await navigator.clipboard.writeText(await answer.text());
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not copied";
  }
  setTimeout(() => (button.textContent = "Copy as text"), 2000);
}
