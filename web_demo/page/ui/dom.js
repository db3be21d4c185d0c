// Finds and makes HTML elements.

/**
 * An element of index.html.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function find(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`The page has no #${id}.`);
  return found;
}

/**
 * A new element.
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
 * @param {string} text
 * @param {string} testid
 * @param {() => void} onClick
 */
export function button(className, text, testid, onClick) {
  const made = element("button", className, text);
  made.type = "button";
  made.dataset.testid = testid;
  made.addEventListener("click", onClick);
  return made;
}

/**
 * Set a property if its value is new. Browsers treat any assignment as a change.
 * @template T
 * @template {keyof T} K
 * @param {T} target
 * @param {K} key
 * @param {T[K]} value
 */
export function setIfChanged(target, key, value) {
  if (target[key] !== value) target[key] = value;
}
