// Invites others: the meeting's link, as text and as a QR code, and the link to its captions. Knows the page's addresses;
// must not know the connection. A link may hold an invite, which must not get into the address of a request.

import { addressProblem } from "../engine/address_note.js";
import { button, element } from "../ui/dom.js";
import { dropdown, labelled, setOptions } from "../ui/form_controls.js";
import { bilingualName } from "../ui/languages.js";
import { t } from "../words/words.js";
import { QrCode } from "./qr_code.js";
import { fillScreen } from "./qr_screen.js";

/** @typedef {import("../ui/languages.js").Language} Language */

const SIZES = /** @type {const} */ ([
  ["1.5", t("share.small")],
  ["2.25", t("share.medium")],
  ["3.5", t("share.large")],
  ["5", t("share.very_large")],
]);

export class ShareDialog {
  #meeting;
  #title;
  #more;
  #fragment;
  #hasCaptions;
  #languages;
  #onProblem;
  #dialog = element("dialog", "dialog wide");
  #link = new CopyField(t("share.link"), "link");
  #qr = new QrCode(t("share.qr"));
  #lang = dropdown("captions-lang");
  #lines = dropdown(
    "captions-lines",
    [..."123456"].map((lines) => [lines, lines]),
    "2",
  );
  #size = dropdown("captions-size", SIZES, "2.25");
  #named = element("p", "dialog-title");
  #captions = new CopyField(t("share.captions"), "captions-link");
  #room = new CopyField(t("share.room"), "room-link");

  /**
   * @param {object} options
   * @param {() => string} options.meeting Its id.
   * @param {() => string} [options.title] What it is called, in one line; empty: in no way.
   * @param {() => Record<string, string>} [options.more] What a link to it has besides.
   * @param {() => readonly Language[]} options.languages
   * @param {(problem: string) => void} options.onProblem
   * @param {string} [options.fragment] Fragment of an address with an invite, which names the meeting, too.
   * @param {boolean} [options.hasCaptions] Whether there is a link to captions.
   */
  constructor({
    meeting,
    title = () => "",
    more = () => ({}),
    languages,
    onProblem,
    fragment = "",
    hasCaptions = true,
  }) {
    this.#meeting = meeting;
    this.#title = title;
    this.#more = more;
    this.#fragment = fragment;
    this.#hasCaptions = hasCaptions;
    this.#languages = languages;
    this.#onProblem = onProblem;
    this.#build();
    closeOnOutsideClick(this.#dialog);
    // The event comes late: the dialog may be open again by then.
    this.#dialog.addEventListener("close", () => this.#dialog.open || this.#dialog.remove());
  }

  open() {
    if (this.#dialog.open) return;
    setOptions(
      this.#lang,
      this.#languages().map(({ tag, name }) => [tag, bilingualName(name, tag)]),
    );
    this.#link.value = this.#address({});
    this.#named.textContent = this.#title();
    this.#named.dir = "auto";
    void this.#qr.show(this.#link.value);
    this.#showCaptions();
    document.body.append(this.#dialog);
    this.#dialog.showModal();
  }

  #build() {
    this.#dialog.ariaLabel = t("share.title");
    this.#dialog.dataset.testid = "share";
    const top = element("div", "dialog-top");
    const close = button("quiet", t("page.close"), "share-close", () => this.#dialog.close());
    top.append(element("h2", "dialog-heading", t("share.title")), close);

    const problem = addressProblem(location);
    const problems = { loopback: t("share.loopback"), insecure: t("share.insecure") };
    const warning = element("p", "dialog-warning", problem ? problems[problem] : "");
    warning.dataset.testid = "share-warning";
    warning.hidden = problem === null;

    const code = element("div", "dialog-code");
    const words = element("div", "dialog-words");
    words.append(
      element("p", "hint", t(this.#fragment ? "share.invited" : "share.anybody")),
      button("secondary", t("share.fill"), "share-fill", () => void fillScreen(this.#link.value, this.#title())),
    );
    if (navigator.share !== undefined) {
      words.append(button("secondary", t("share.native"), "share-native", () => void this.#shareNatively()));
    }
    code.append(this.#qr.element, words);

    const choices = element("div", "dialog-choices");
    choices.append(
      labelled(t("download.language"), this.#lang),
      labelled(t("share.lines"), this.#lines),
      labelled(t("display.size"), this.#size),
    );
    choices.addEventListener("change", () => this.#showCaptions());

    const body = element("div", "dialog-body");
    body.append(top, this.#named, warning, this.#link.element, code);
    this.#dialog.append(body);
    if (!this.#hasCaptions) return;
    body.append(
      element("h3", "dialog-subheading", t("share.captions_title")),
      choices,
      this.#captions.element,
      this.#room.element,
      element("p", "hint", t("share.captions_hint")),
    );
  }

  /** @param {Record<string, string>} options */
  #address(options) {
    const url = new URL(document.baseURI);
    url.hash = this.#fragment;
    const meeting = this.#fragment ? {} : { meeting: this.#meeting() };
    url.search = new URLSearchParams({ ...meeting, ...this.#more(), ...options }).toString();
    return url.href;
  }

  #showCaptions() {
    const [lang, lines, size] = [this.#lang.value, this.#lines.value, this.#size.value];
    this.#captions.value = this.#address({ view: "captions", lang, lines, size });
    this.#room.value = this.#address({ view: "reading", lang });
  }

  async #shareNatively() {
    try {
      await navigator.share({ title: this.#title() || document.title, url: this.#link.value });
    } catch (error) {
      if (error instanceof Error && error.name !== "AbortError") this.#onProblem(t("share.failed"));
    }
  }
}

/** A text with a button that copies it. */
class CopyField {
  element;
  #input = element("input", "");
  #result = element("span", "hint");

  /**
   * @param {string} label
   * @param {string} testid
   */
  constructor(label, testid) {
    this.#input.readOnly = true;
    this.#input.dataset.testid = testid;
    this.#input.addEventListener("focus", () => this.#input.select());
    this.element = labelled(label, this.#input);
    const copy = button("secondary", t("share.copy"), `${testid}-copy`, () => void this.#copy());
    copy.ariaLabel = t("share.copy_what", { what: label });
    this.#result.role = "status";
    const row = element("div", "dialog-copy");
    row.append(this.#input, copy);
    this.element.append(row, this.#result);
  }

  get value() {
    return this.#input.value;
  }
  set value(value) {
    this.#input.value = value;
    this.#result.textContent = "";
  }

  async #copy() {
    let copied = true;
    try {
      await navigator.clipboard.writeText(this.value);
    } catch {
      // The user did not allow it, or there is no clipboard because the page came without TLS.
      this.#input.select();
      copied = document.execCommand("copy");
    }
    this.#result.textContent = copied ? t("share.copied") : t("share.selected");
  }
}

/**
 * A click outside a dialog closes it, unless the pointer went down inside.
 * @param {HTMLDialogElement} dialog Without padding: a click on the dialog itself, not on its content, is outside.
 */
function closeOnOutsideClick(dialog) {
  let startedOutside = false;
  dialog.addEventListener("pointerdown", ({ target }) => (startedOutside = target === dialog));
  dialog.addEventListener("click", ({ target }) => startedOutside && target === dialog && dialog.close());
}
