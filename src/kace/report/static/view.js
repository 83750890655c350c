// Comfort only: keys, and news of a page that is still growing. Every page works without this.
"use strict";
(() => {
  const KEYS = [
    ["/", "Search"], ["j  k", "Next and previous row"], ["Enter", "Open the row"], ["[  ]", "Previous and next page"],
    ["u", "One level up"], ["g", "What is open"], ["?", "These keys"],
  ];
  const ROWS = "table.rows tbody tr, .workspace > li, [data-row]";
  const typing = (node) => node instanceof HTMLElement && (node.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(node.tagName));
  const made = (name, words = "") => Object.assign(document.createElement(name), { textContent: words });

  function showKeys() {
    const open = document.querySelector("dialog.keys");
    if (open) return open.close();
    const dialog = Object.assign(made("dialog"), { className: "keys", ariaLabel: "Keys" });
    const list = made("dl");
    for (const [key, what] of KEYS) {
      const term = made("dt");
      for (const one of key.split("  ")) term.append(made("kbd", one), " ");
      list.append(term, made("dd", what));
    }
    const close = made("button", "Close");
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    dialog.append(made("h2", "Keys"), list, close);
    document.body.append(dialog);
    dialog.showModal();
  }

  function move(step) {
    const rows = [...document.querySelectorAll(ROWS)].filter((row) => row.querySelector("a[href]") || row.matches("a[href]"));
    if (!rows.length) return;
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const next = here < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, here + step));
    const link = rows[next].matches("a[href]") ? rows[next] : rows[next].querySelector("a[href]");
    link.focus({ focusVisible: true });
    rows[next].scrollIntoView({ block: "nearest" });
  }

  const follow = (selector) => document.querySelector(`a${selector}`)?.click();
  function search() {
    const field = document.querySelector("main input[type=search]") || document.querySelector("input[type=search]");
    if (!field) return false;
    field.focus();
    field.select();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(document.activeElement)) return document.activeElement.blur();
    if (typing(event.target)) return;
    if (document.querySelector("dialog[open]") && event.key !== "?") return;
    const act = {
      "/": search, "?": showKeys, j: () => move(1), k: () => move(-1), "[": () => follow("[rel=prev]"),
      "]": () => follow("[rel=next]"), u: () => follow(":is(.crumbs li:nth-last-child(2) a)"), g: () => follow(".brand"),
    }[event.key];
    if (act && act() !== false) event.preventDefault();
  });
  for (const hint of document.querySelectorAll(".keys-hint")) hint.hidden = false;

  // A button that copies the text of an element; without script, or where the browser forbids it, there is none.
  for (const button of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    });
  }

  // A filter that is changed is applied at once; the form's button does the same without script.
  document.addEventListener("change", (event) => {
    const form = event.target instanceof HTMLSelectElement && event.target.closest("form.filters");
    if (form) form.requestSubmit();
  });

  // A page that says so is fetched again; only its content is exchanged, and never under somebody's hands.
  const seconds = Number(document.body.dataset.refresh);
  const busy = () => document.hidden || typing(document.activeElement) || !getSelection().isCollapsed || document.querySelector("dialog[open]");
  async function renew() {
    let wait = seconds;
    try {
      if (!busy()) {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (!answer.ok) throw new Error(answer.statusText);
        if (fresh.querySelector(".math") && typeof katex === "undefined") return location.reload(); // with what sets it
        exchange(fresh);
        wait = Number(fresh.body.dataset.refresh);
      }
    } catch {
      wait = Math.max(10, seconds * 3); // the server may come back
    }
    if (wait > 0) setTimeout(renew, wait * 1000);
  }
  let shown = "";
  function exchange(fresh) {
    const old = document.querySelector("main");
    const main = fresh.querySelector("main");
    if (!old || !main || busy() || shown === main.innerHTML) return;
    shown = main.innerHTML;
    const opened = [...old.querySelectorAll("details")].map((item) => item.open);
    const focus = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
    old.replaceWith(document.adoptNode(main));
    main.querySelectorAll("details").forEach((item, index) => { if (index < opened.length) item.open = opened[index]; });
    if (focus) [...main.querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === focus)?.focus({ preventScroll: true });
    document.title = fresh.title;
    document.dispatchEvent(new CustomEvent("kace:changed", { detail: main }));
  }
  if (seconds > 0) setTimeout(renew, seconds * 1000);
})();
