// Loads what was said before the oldest row, a part of the meeting's log at a time, and offers it at the top of the
// transcript. Knows the gateway's address of transcripts; must not know the connection or the rows.

import { button, element, setIfChanged } from "../ui/dom.js";
import { t } from "../words/words.js";
import { keyOf } from "./entry.js";

/** @typedef {import("./entry.js").Cell} Cell */
/** @typedef {import("./entry.js").Entry} Entry */
/** @typedef {import("./transcript.js").Transcript} Transcript */

/**
 * An utterance in the gateway's transcript (docs/http.md).
 * @typedef {object} Utterance
 * @property {string} participant
 * @property {string} utterance
 * @property {string} speaker
 * @property {string} lang
 * @property {number} rev
 * @property {string} text
 * @property {number} at_ms
 * @property {number} offset
 * @property {string[]} [replaces] Of a correction.
 * @property {Record<string, {status: "original" | "translated" | "failed" | "missing", text: string | null, unsure?: boolean}>} translations
 */

// Rows that one click adds: some screens full.
const PART = 100;
const TIMEOUT_MS = 20_000;

export class EarlierRows {
  element = element("div", "earlier");
  #options;
  #button;
  #note = element("p", "hint");
  #isBusy = false;
  /** The oldest position before which there is nothing more to have; 0 as long as that is not known. */
  #end = 0;

  /**
   * @param {object} options
   * @param {Transcript} options.transcript
   * @param {() => string} options.meeting Its id.
   * @param {() => readonly string[]} options.reads
   * @param {(problem: string) => void} options.onProblem
   * @param {(() => Promise<string>) | null} options.token Gets a fresh token; null where none is needed.
   */
  constructor(options) {
    this.#options = options;
    this.#button = button("quiet", t("transcript.earlier"), "earlier", () => void this.#load());
    this.#note.tabIndex = -1;
    this.element.append(this.#button, this.#note);
    options.transcript.listen(({ what }) => what !== "original" && what !== "translation" && this.#show());
    this.#show();
  }

  #show() {
    const { oldest } = this.#options.transcript;
    const isMore = oldest > 1 && oldest !== this.#end;
    if (isMore) setIfChanged(this.#note, "textContent", "");
    const isOffered = isMore || this.#isBusy;
    // The focus goes to what there is instead, and a screen reader reads it.
    if (!isOffered && document.activeElement === this.#button) this.#note.focus({ preventScroll: true });
    setIfChanged(this.#button, "hidden", !isOffered);
  }

  async #load() {
    if (this.#isBusy) return;
    const { transcript, reads, onProblem } = this.#options;
    this.#isBusy = true;
    this.#button.ariaDisabled = "true"; // not `disabled`: a disabled button loses the focus
    try {
      const before = transcript.oldest;
      const { epoch, complete, utterances } = await this.#part(before, reads());
      transcript.addEarlier(
        epoch,
        utterances.map((said) => entryOf(said, epoch)),
      );
      if (utterances.length < PART) {
        this.#end = transcript.oldest;
        this.#note.textContent = t(complete ? "transcript.begins" : "transcript.not_kept");
      }
    } catch (error) {
      const isExplained = error instanceof LoadError || (error instanceof Error && "permanent" in error);
      onProblem(isExplained ? error.message : t("transcript.earlier_failed"));
    } finally {
      this.#isBusy = false;
      this.#button.ariaDisabled = null;
      this.#show();
    }
  }

  /**
   * Fill in, for what is shown, the translations into languages that are read only now, as far as they are kept. For the
   * others the transcript says where translations begin.
   * @param {readonly string[]} langs
   */
  async fill(langs) {
    const { transcript } = this.#options;
    if (langs.length === 0 || this.element.hidden) return;
    try {
      for (let before = Infinity; before > transcript.oldest && transcript.oldest > 0;) {
        const { epoch, utterances } = await this.#part(before, langs);
        transcript.fillIn(
          epoch,
          utterances.map((said) => entryOf(said, epoch)),
        );
        before = utterances.length < PART ? 0 : (utterances[0]?.offset ?? 0);
      }
    } catch {
      // It stays as it is without them.
    }
  }

  /**
   * @param {number} before Infinity: the newest.
   * @param {readonly string[]} langs
   * @returns {Promise<{epoch: string, complete: boolean, utterances: Utterance[]}>} Oldest first.
   */
  async #part(before, langs) {
    const { meeting, token } = this.#options;
    const url = new URL(`v1/meetings/${encodeURIComponent(meeting())}/transcript.json`, document.baseURI);
    url.search = new URLSearchParams({ last: String(PART) }).toString();
    if (before < Infinity) url.searchParams.set("before", String(before));
    if (langs.length > 0) url.searchParams.set("lang", langs.join());
    const headers = token ? { Authorization: `Bearer ${await token()}` } : {};
    const response = await fetch(url, { cache: "no-store", headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (response.ok) return await response.json();
    const { detail } = await response.json().catch(() => ({}));
    throw new LoadError(detail ?? t("gateway.status", { status: response.status }));
  }
}

/** The gateway's answer says why. */
class LoadError extends Error {}

/**
 * @param {Utterance} said
 * @param {string} epoch Epoch of the log that it is from.
 * @returns {Entry}
 */
function entryOf({ participant, utterance, speaker, lang, rev, text, at_ms, offset, translations, replaces }, epoch) {
  /** @type {Map<string, Cell>} */
  const cells = new Map();
  /** @type {Set<string>} */
  const optional = new Set();
  for (const [tag, { status, text: translated, unsure = false }] of Object.entries(translations)) {
    if (status === "missing") optional.add(tag);
    if (status !== "translated" && status !== "failed") continue;
    cells.set(tag, {
      ...{ lang: tag, committed: "", tentative: "", isVoid: false, text: translated ?? "" },
      ...{
        state: status === "failed" ? "failed" : "final",
        reason: status === "failed" ? t("transcript.no_translation") : "",
      },
      ...{ timings: null, tokens: 0, truncated: false, unsure },
    });
  }
  return {
    ...{
      key: keyOf(participant, utterance),
      participant,
      utterance,
      speaker,
      lang,
      text,
      rev,
      offset,
      epoch,
      cells,
      optional,
    },
    ...{
      final: true,
      own: false,
      at: new Date(at_ms),
      reason: "",
      unsent: false,
      isCorrected: replaces !== undefined,
      isEarlier: true,
    },
  };
}
