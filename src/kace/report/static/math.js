// Sets the maths of a page with KaTeX. TeX that cannot be set, or is too much, stays readable as it was written.
"use strict";
(() => {
  if (typeof katex === "undefined") return;
  const MAX_TEX = 4000; // characters of one formula
  const MAX_DEPTH = 60; // nested braces: KaTeX recurses on each
  const SLICE = 12; // milliseconds of setting before the page gets its turn
  const MACROS = { "\\R": "\\mathbb{R}", "\\N": "\\mathbb{N}", "\\Z": "\\mathbb{Z}", "\\Q": "\\mathbb{Q}" };

  function tooDeep(tex) {
    let depth = 0;
    return [...tex].some((char) => (depth += char === "{" ? 1 : char === "}" ? -1 : 0) > MAX_DEPTH);
  }

  // KaTeX writes a few style attributes (errors, \pmb), which the page's policy forbids; all else goes by properties.
  function withoutStyles(node) {
    if (node.attributes) delete node.attributes.style;
    (node.children || []).forEach(withoutStyles);
    return node;
  }

  function setOne(span) {
    const tex = span.textContent;
    if (tex.length > MAX_TEX || tooDeep(tex)) return span.classList.add("unset");
    let made;
    try {
      const safe = { trust: false, throwOnError: false, strict: "ignore", maxSize: 10, maxExpand: 500, macros: { ...MACROS } };
      made = katex.__renderToDomTree(tex, { displayMode: span.classList.contains("display"), ...safe });
      made = made.classes.includes("katex-error") ? null : withoutStyles(made).toNode();
    } catch {
      made = null; // too deep for it after all
    }
    if (made === null) return span.classList.add("unset"); // the TeX stands there already
    span.replaceChildren(made);
    span.classList.add("set");
  }

  // A formula that is wider than its line scrolls by itself, so that the page never has to.
  function fit(root) {
    const right = (node) => node.getBoundingClientRect().right;
    const lines = [...root.querySelectorAll(".math.set:not(.display)")];
    for (const span of lines.filter((span) => right(span) > right(span.parentElement) + 1)) span.classList.add("wide");
  }

  // What is on the screen first, the rest when there is time: a page of a thousand formulas still scrolls at once.
  function setAll(root) {
    const waiting = [...root.querySelectorAll(".math:not(.set):not(.unset)")];
    const near = new Set(waiting.filter((span) => span.getBoundingClientRect().top < innerHeight * 2));
    const queue = [...near, ...waiting.filter((span) => !near.has(span))].reverse();
    function some() {
      const end = performance.now() + SLICE;
      while (queue.length && performance.now() < end) setOne(queue.pop());
      if (queue.length) return void setTimeout(some);
      fit(root);
      document.documentElement.dataset.maths = "set";
    }
    some();
  }

  setAll(document);
  document.addEventListener("kace:changed", (event) => setAll(event.detail));
})();
