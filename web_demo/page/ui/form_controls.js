// Choices with their labels. Knows how they are made; must not know what is chosen, nor what for.

import { element } from "./dom.js";
import { ownName } from "./languages.js";

/** @typedef {readonly (readonly [value: string, text: string])[]} Options */

let ids = 0;

/**
 * A checkbox in its label.
 * @param {string} className
 * @param {string} testid
 * @param {string} text
 * @param {(checked: boolean) => void} onChange
 */
export function choice(className, testid, text, onChange) {
  const label = element("label", className);
  const input = element("input", "");
  input.type = "checkbox";
  input.dataset.testid = testid;
  input.addEventListener("change", () => onChange(input.checked));
  label.append(input, element("span", "", text));
  return { label, input };
}

/**
 * One of several, as chips.
 * @template {string} T
 * @param {string} testid
 * @param {readonly (readonly [value: T, text: string, ...unknown[]])[]} options
 * @param {T} chosen
 * @param {(value: T) => void} onChange
 */
export function radios(testid, options, chosen, onChange) {
  const chips = element("div", "chips");
  const name = `choice-${++ids}`;
  for (const [value, text] of options) {
    const { label, input } = choice("chip", `${testid}-${value}`, text, () => onChange(value));
    Object.assign(input, { type: "radio", name, value, checked: value === chosen });
    chips.append(label);
  }
  return chips;
}

/**
 * @param {string} label
 * @param {...Node} content
 */
export function group(label, ...content) {
  const made = element("fieldset", "panel-group");
  made.append(element("legend", "label", label), ...content);
  return made;
}

/**
 * @param {string} label
 * @param {HTMLElement} control
 */
export function labelled(label, control) {
  const made = element("div", "panel-field");
  const caption = element("label", "label", label);
  caption.htmlFor = control.id = `control-${++ids}`;
  made.append(caption, control);
  return made;
}

/**
 * Other options, and the value that was chosen if it is still among them.
 * @param {HTMLSelectElement} select
 * @param {Options} options
 * @param {string} [value]
 */
export function refill(select, options, value = select.value) {
  select.replaceChildren(...options.map(([offered, text]) => new Option(text, offered)));
  if (options.some(([offered]) => offered === value)) select.value = value;
}

/**
 * @param {string} testid
 * @param {Options} [options]
 * @param {string} [value]
 */
export function dropdown(testid, options = [], value) {
  const select = element("select", "");
  select.dataset.testid = testid;
  refill(select, options, value);
  return select;
}

/**
 * A language's English name with its own one, where that is another.
 * @param {string} name
 * @param {string} tag
 */
export function bothNames(name, tag) {
  const own = ownName(tag);
  return own && own !== name ? `${name} (${own})` : name;
}
