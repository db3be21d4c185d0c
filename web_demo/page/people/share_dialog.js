// How others get into the meeting: its link, as text and as a QR code, and captions for a wall. Knows addresses of the
// page; must not know the connection.

import { bothNames, dropdown, labelled, refill } from "../ui/form_controls.js";
import { button, element } from "../ui/dom.js";

/** @typedef {import("../ui/languages.js").Language} Language */

const LOOPBACK = /^(localhost|.*\.localhost|127\..*|\[::1\]|0\.0\.0\.0)$/;
const SIZES = /** @type {const} */ ([
  ["1.5", "Small"],
  ["2.25", "Medium"],
  ["3.5", "Large"],
  ["5", "Very large"],
]);

export class ShareDialog {
  #meeting;
  #languages;
  #object;
  #dialog = element("dialog", "dialog wide");
  #link = new CopyField("Meeting link", "link");
  #qr = element("img", "dialog-qr");
  #lang = dropdown("captions-lang");
  #lines = dropdown("captions-lines", [..."123456"].map((lines) => [lines, lines]), "2");
  #size = dropdown("captions-size", SIZES, "2.25");
  #captions = new CopyField("Captions link", "captions-link");

  /**
   * @param {object} options
   * @param {() => string} options.meeting Its id.
   * @param {() => readonly Language[]} options.languages
   * @param {(problem: string) => void} options.object
   */
  constructor({ meeting, languages, object }) {
    this.#meeting = meeting;
    this.#languages = languages;
    this.#object = object;
    this.#build();
    closeFromOutside(this.#dialog);
    // Told of late: it may have been opened again by then.
    this.#dialog.addEventListener("close", () => this.#dialog.open || this.#dialog.remove());
  }

  open() {
    if (this.#dialog.open) return;
    refill(this.#lang, this.#languages().map(({ tag, name }) => [tag, bothNames(name, tag)]));
    this.#link.value = this.#address({});
    this.#qr.src = `./qr.svg?link=${encodeURIComponent(this.#link.value)}`;
    this.#showCaptions();
    document.body.append(this.#dialog);
    this.#dialog.showModal();
  }

  #build() {
    this.#dialog.ariaLabel = "Share this meeting";
    this.#dialog.dataset.testid = "share";
    const top = element("div", "dialog-top");
    const close = button("quiet", "Close", "share-close", () => this.#dialog.close());
    top.append(element("h2", "dialog-heading", "Share this meeting"), close);

    const warning = element("p", "dialog-warning", warningFor(location));
    warning.dataset.testid = "share-warning";
    warning.hidden = !warning.textContent;

    this.#qr.alt = "QR code of the meeting link";
    const code = element("div", "dialog-code");
    const words = element("div", "dialog-words");
    words.append(element("p", "hint", "Whoever has this link can join and read, each in a language of their own."));
    if (navigator.share !== undefined) {
      words.append(button("secondary", "Share…", "share-native", () => void this.#shareNatively()));
    }
    code.append(this.#qr, words);

    const choices = element("div", "dialog-choices");
    choices.append(labelled("Language", this.#lang), labelled("Lines", this.#lines), labelled("Text size", this.#size));
    choices.addEventListener("change", () => this.#showCaptions());

    const body = element("div", "dialog-body");
    body.append(
      top,
      warning,
      this.#link.element,
      code,
      element("h3", "dialog-subheading", "Captions for OBS and wall screens"),
      choices,
      this.#captions.element,
      element("p", "hint", "OBS: add a Browser source with this address. Wall screen: open it, and fill the screen with F11."),
    );
    this.#dialog.append(body);
  }

  /** @param {Record<string, string>} options */
  #address(options) {
    const url = new URL(document.baseURI);
    url.hash = "";
    url.search = new URLSearchParams({ meeting: this.#meeting(), ...options }).toString();
    return url.href;
  }

  #showCaptions() {
    const [lang, lines, size] = [this.#lang.value, this.#lines.value, this.#size.value];
    this.#captions.value = this.#address({ view: "captions", lang, lines, size });
  }

  async #shareNatively() {
    try {
      await navigator.share({ title: document.title, url: this.#link.value });
    } catch (error) {
      if (error instanceof Error && error.name !== "AbortError") this.#object("This browser could not share the link.");
    }
  }
}

/** A text to take along. */
class CopyField {
  element;
  #input = element("input", "");
  #said = element("span", "hint");

  /**
   * @param {string} label
   * @param {string} testid
   */
  constructor(label, testid) {
    this.#input.readOnly = true;
    this.#input.dataset.testid = testid;
    this.#input.addEventListener("focus", () => this.#input.select());
    this.element = labelled(label, this.#input);
    const copy = button("secondary", "Copy", `${testid}-copy`, () => void this.#copy());
    copy.ariaLabel = `Copy: ${label}`;
    this.#said.role = "status";
    const row = element("div", "dialog-copy");
    row.append(this.#input, copy);
    this.element.append(row, this.#said);
  }

  get value() {
    return this.#input.value;
  }
  set value(value) {
    this.#input.value = value;
    this.#said.textContent = "";
  }

  async #copy() {
    let copied = true;
    try {
      await navigator.clipboard.writeText(this.value);
    } catch {
      // No leave, or an address without TLS, where there is no clipboard.
      this.#input.select();
      copied = document.execCommand("copy");
    }
    this.#said.textContent = copied ? "Copied" : "Selected: press Ctrl+C or ⌘C to copy it.";
  }
}

/** What keeps others from using a page at this address. @param {Location} location */
function warningFor({ hostname, protocol }) {
  if (LOOPBACK.test(hostname)) {
    return (
      "This address works on this computer alone. For others, start the gateway with --host 0.0.0.0 and open the page " +
      `at this machine’s own address instead of ${hostname}, or put it behind TLS (https), which microphones need.`
    );
  }
  return protocol === "https:" ? "" : "Microphones need https: at this address, others can read and type only.";
}

/**
 * A click beside a dialog closes it, unless it is the end of a movement that began inside.
 * @param {HTMLDialogElement} dialog Without padding: what hits it, and nothing in it, is beside it.
 */
function closeFromOutside(dialog) {
  let outside = false;
  dialog.addEventListener("pointerdown", ({ target }) => (outside = target === dialog));
  dialog.addEventListener("click", ({ target }) => outside && target === dialog && dialog.close());
}
