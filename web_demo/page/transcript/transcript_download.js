// Takes the transcript along as a file. Knows the gateway's addresses of transcripts; must not know the connection.

import { dropdown, labelled, refill } from "../ui/form_controls.js";
import { button, element } from "../ui/dom.js";

/** @typedef {import("../ui/languages.js").Language} Language */

const FORMATS = /** @type {const} */ ([
  ["txt", "Text (.txt)"],
  ["srt", "Subtitles (.srt)"],
  ["vtt", "Web subtitles (.vtt)"],
  ["json", "Data (.json)"],
]);
const SIDE_BY_SIDE = ",";
// How long a browser may take to begin with a file that it was given.
const SAVING_MS = 60_000;

export class Downloads {
  element = element("div", "panel");
  #options;
  #format = dropdown("download-format", FORMATS);
  #lang = dropdown("download-lang");
  #said = element("p", "hint");
  #busy = false;

  /**
   * @param {object} options
   * @param {() => string} options.meeting Its id; empty while there is none.
   * @param {() => readonly Language[]} options.languages
   * @param {(tag: string) => string} options.nameOf
   * @param {() => readonly string[]} options.reads
   * @param {(problem: string) => void} options.object
   */
  constructor(options) {
    this.#options = options;
    this.#said.role = "status";
    const choices = element("div", "panel-choices");
    choices.append(labelled("Format", this.#format), labelled("Language", this.#lang));
    this.element.append(
      element("h2", "panel-heading", "Download the transcript"),
      choices,
      button("secondary", "Download", "download", () => void this.#download()),
      this.#said,
      element("p", "hint", "The gateway keeps what was said for 4 hours, unless it was set otherwise."),
    );
    // What is read changes now and then; this is early enough to offer it.
    for (const event of ["pointerenter", "focusin", "change"]) this.element.addEventListener(event, () => this.#offer());
    this.#offer();
  }

  #offer() {
    const { languages, nameOf, reads } = this.#options;
    const tags = new Set([...reads(), ...languages().map(({ tag }) => tag)]);
    refill(this.#lang, [
      ["", this.#format.value === "json" ? "Every language" : "As spoken"],
      ...(reads().length > 1 ? [/** @type {const} */ ([SIDE_BY_SIDE, "All I read, side by side"])] : []),
      ...[...tags].map((tag) => /** @type {const} */ ([tag, nameOf(tag)])),
    ]);
  }

  async #download() {
    const { object } = this.#options;
    const meeting = this.#options.meeting();
    if (this.#busy) return;
    if (!meeting) return object("There is no meeting yet.");
    this.#busy = true;
    this.#said.textContent = "";
    const format = this.#format.value;
    const lang = this.#lang.value === SIDE_BY_SIDE ? this.#options.reads().join() : this.#lang.value;
    const url = new URL(`v1/meetings/${encodeURIComponent(meeting)}/transcript.${format}`, document.baseURI);
    if (lang) url.searchParams.set("lang", lang);
    try {
      const response = await fetch(url, { cache: "no-store" });
      if (!response.ok) return object(await problem(response));
      const said = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "");
      const name = said?.[1] ?? `${meeting}.${format}`;
      save(await response.blob(), name);
      this.#said.textContent = `Saved as ${name}`;
    } catch {
      object("The gateway does not answer.");
    } finally {
      this.#busy = false;
    }
  }
}

/** @param {Response} response */
async function problem(response) {
  try {
    const { detail } = await response.json();
    if (typeof detail === "string") return detail;
  } catch {
    // A proxy's own error page.
  }
  return `The gateway answers with status ${response.status}.`;
}

/**
 * @param {Blob} content
 * @param {string} name
 */
function save(content, name) {
  const link = element("a", "");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVING_MS);
}
