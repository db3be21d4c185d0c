// Downloads the transcript as a file. Knows the gateway's addresses of transcripts; must not know the connection.

import { button, element } from "../ui/dom.js";
import { dropdown, labelled, setOptions } from "../ui/form_controls.js";
import { pageLanguage, t } from "../words/words.js";
import { speakerName } from "./entry.js";

/** @typedef {import("../ui/languages.js").Language} Language */
/** @typedef {import("./entry.js").Entry} Entry */
/** @typedef {import("./transcript.js").Transcript} Transcript */

const FORMATS = /** @type {const} */ ([
  ["txt", t("download.txt")],
  ["srt", t("download.srt")],
  ["vtt", t("download.vtt")],
  ["json", t("download.json")],
]);
const SIDE_BY_SIDE = ",";
// Before a translation that the model is unsure of, as in the gateway's files.
const UNSURE = "(?) ";
// How long the browser has time to start saving the file.
const SAVING_MS = 60_000;

export class TranscriptDownload {
  element = element("div", "panel");
  #options;
  #format = dropdown("download-format", FORMATS);
  #lang = dropdown("download-lang");
  #result = element("p", "hint");
  #isBusy = false;

  /**
   * @param {object} options
   * @param {() => string} options.meeting Its id; empty if there is none yet.
   * @param {() => readonly Language[]} options.languages
   * @param {(tag: string) => string} options.nameOf
   * @param {() => readonly string[]} options.reads
   * @param {(problem: string) => void} options.onProblem
   * @param {(() => Promise<string>) | null} [options.token] Gets a fresh token; null where none is needed.
   */
  constructor(options) {
    this.#options = options;
    this.#result.role = "status";
    const choices = element("div", "panel-choices");
    choices.append(labelled(t("download.format"), this.#format), labelled(t("download.language"), this.#lang));
    this.element.append(
      element("h2", "panel-heading", t("download.title")),
      choices,
      button("secondary", t("download.action"), "download", () => void this.#download()),
      this.#result,
      element("p", "hint", t("download.kept")),
      element("p", "hint", t("download.untranslated")),
    );
    // The languages that are read may change. Bring the options up to date before one can be chosen.
    for (const event of ["pointerenter", "focusin", "change"])
      this.element.addEventListener(event, () => this.#updateOptions());
    this.#updateOptions();
  }

  #updateOptions() {
    const { languages, nameOf, reads } = this.#options;
    const tags = new Set([...reads(), ...languages().map(({ tag }) => tag)]);
    setOptions(this.#lang, [
      ["", t(this.#format.value === "json" ? "download.every" : "transcript.as_spoken")],
      ...(reads().length > 1 ? [/** @type {const} */ ([SIDE_BY_SIDE, t("download.side_by_side")])] : []),
      ...[...tags].map((tag) => /** @type {const} */ ([tag, nameOf(tag)])),
    ]);
  }

  async #download() {
    const { onProblem, token } = this.#options;
    const meeting = this.#options.meeting();
    if (this.#isBusy) return;
    if (!meeting) return onProblem(t("download.none"));
    this.#isBusy = true;
    this.#result.textContent = "";
    const format = this.#format.value;
    const lang = this.#lang.value === SIDE_BY_SIDE ? this.#options.reads().join() : this.#lang.value;
    const url = new URL(`v1/meetings/${encodeURIComponent(meeting)}/transcript.${format}`, document.baseURI);
    if (lang) url.searchParams.set("lang", lang);
    // Text always has the marks, and data has a field.
    if (format === "srt" || format === "vtt") url.searchParams.set("mark", "unsure");
    try {
      const headers = token ? { Authorization: `Bearer ${await token()}` } : {};
      const response = await fetch(url, { cache: "no-store", headers });
      if (!response.ok) return onProblem(await problem(response));
      const said = response.headers.get("content-disposition") ?? "";
      const titled = /filename\*=UTF-8''([^;]+)/.exec(said)?.[1];
      const name = titled
        ? decodeURIComponent(titled)
        : (/filename="([^"]+)"/.exec(said)?.[1] ?? `${meeting}.${format}`);
      save(await response.blob(), name);
      this.#result.textContent = t("download.saved", { name });
    } catch (error) {
      const isRefused = error instanceof Error && "permanent" in error;
      onProblem(isRefused ? error.message : t("gateway.no_answer"));
    } finally {
      this.#isBusy = false;
    }
  }
}

/**
 * A button that saves what the page has shown, where the gateway gives out nothing more.
 * @param {object} options
 * @param {Transcript} options.transcript
 * @param {() => readonly string[]} options.reads
 * @param {() => string} options.name Of the file, without its ending.
 */
export function saveShownButton({ transcript, reads, name }) {
  const panel = element("div", "panel");
  const saveShown = () => {
    const texts = [...transcript.entries.values()].map((entry) => shownText(entry, reads()));
    save(
      new Blob([texts.filter((text) => text !== "").join("\n\n")], { type: "text/plain" }),
      `${name().replace(/[\\/:*?"<>|]/g, " ")}.txt`,
    );
  };
  panel.append(element("p", "hint", t("end.save_hint")), button("secondary", t("end.save"), "save-shown", saveShown));
  return panel;
}

/**
 * @param {Entry} entry
 * @param {readonly string[]} reads
 */
function shownText(entry, reads) {
  const time = entry.at?.toLocaleTimeString(pageLanguage()) ?? "";
  const translations = reads.filter((lang) => lang !== entry.lang).map((lang) => entry.cells.get(lang));
  const lines = translations.map((cell) => (cell?.text ? `${cell.unsure ? UNSURE : ""}${cell.text}` : ""));
  const said = [entry.text, ...lines].filter((line) => line !== "");
  return said.length === 0 ? "" : [`${time} ${speakerName(entry)}`.trim(), ...said].join("\n");
}

/** @param {Response} response */
async function problem(response) {
  try {
    const { detail } = await response.json();
    if (typeof detail === "string") return detail;
  } catch {
    // A proxy's error page.
  }
  return t("gateway.status", { status: response.status });
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
