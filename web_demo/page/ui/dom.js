// Elements of the page: found in index.html, or made.

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function find(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`The page has no #${id}.`);
  return found;
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {string} className
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, className, text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

/**
 * @param {string} className
 * @param {string} words
 * @param {string} testid
 * @param {() => void} click
 */
export function button(className, words, testid, click) {
  const made = element("button", className, words);
  made.type = "button";
  made.dataset.testid = testid;
  made.addEventListener("click", click);
  return made;
}
