// Form controls with their labels. Must not know what is chosen with them.

import { element } from "./dom.js";

/** @typedef {readonly (readonly [value: string, text: string])[]} Options */

let ids = 0;

/**
 * A checkbox in its label.
 * @param {string} className
 * @param {string} testid
 * @param {string} text
 * @param {(checked: boolean) => void} onChange
 */
export function checkbox(className, testid, text, onChange) {
  const label = element("label", className);
  const input = element("input", "");
  input.type = "checkbox";
  input.dataset.testid = testid;
  input.addEventListener("change", () => onChange(input.checked));
  label.append(input, element("span", "", text));
  return { label, input };
}

/**
 * Radio buttons, shown as chips.
 * @template {string} T
 * @param {string} testid
 * @param {readonly (readonly [value: T, text: string, ...unknown[]])[]} options
 * @param {T} selected
 * @param {(value: T) => void} onChange
 */
export function radioButtons(testid, options, selected, onChange) {
  const chips = element("div", "chips");
  const name = `radio-${++ids}`;
  for (const [value, text] of options) {
    const { label, input } = checkbox("chip", `${testid}-${value}`, text, () => onChange(value));
    Object.assign(input, { type: "radio", name, value, checked: value === selected });
    chips.append(label);
  }
  return chips;
}

/**
 * A group of controls with a heading.
 * @param {string} heading
 * @param {...Node} content
 */
export function fieldset(heading, ...content) {
  const made = element("fieldset", "panel-group");
  made.append(element("legend", "label", heading), ...content);
  return made;
}

/**
 * A control below its label.
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
 * Replace the options. The selected value stays selected if it is still among them.
 * @param {HTMLSelectElement} select
 * @param {Options} options
 * @param {string} [value]
 */
export function setOptions(select, options, value = select.value) {
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
  setOptions(select, options, value);
  return select;
}
