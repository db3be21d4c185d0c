// Which languages one reads, how early their text appears, and whether originals are shown. Must not know the
// connection.

import { element } from "../ui/dom.js";
import { checkbox, dropdown, fieldset, labelled, radioButtons, setOptions } from "../ui/form_controls.js";
import { nativeName, preferredLanguages } from "../ui/languages.js";
import { loadPreference, savePreference } from "../ui/preferences.js";
import { languageName, pageLanguage, t } from "../words/words.js";

/** @typedef {import("../../client/messages.js").Stability} Stability */
/** @typedef {import("../ui/languages.js").Language} Language */

/**
 * Language that is spoken → those into which it is translated. Absent: each is translated into every other.
 * @typedef {Record<string, string[]>} Targets
 */

/**
 * @typedef {object} Reading
 * @property {string[]} reads Tags, in the order in which they were chosen.
 * @property {Stability} stability
 * @property {boolean} originals Whether the original text is shown, too.
 * @property {string} announce The language that a screen reader reads out, one of `reads`; empty for none.
 */

const STABILITIES = /** @type {const} */ ([
  ["live", t("reading.live"), t("reading.live.hint")],
  ["stable", t("reading.stable"), t("reading.stable.hint")],
  ["final", t("reading.final"), t("reading.final.hint")],
]);
// What is saved if the screen reader is to read nothing out.
const SILENT = "none";

export class ReadingSettings {
  element = element("div", "panel");
  #nameOf;
  #onChange;
  #value;
  #limit = Infinity;
  /** The user's choice for `announce`. If null, the first language that is read. @type {string | null} */
  #announceChoice;
  /** @type {Map<string, HTMLInputElement>} */
  #languages = new Map();
  /** Those of them that the gateway offers. @type {ReadonlySet<string>} */
  #offered = new Set();
  #chips = element("div", "chips");
  #stabilities;
  #note = element("p", "hint");
  /** From which languages those that are read are translated, where that is not from all. */
  #sources = element("p", "hint");
  /** @type {Targets | undefined} */
  #targets;
  #explanation = element("p", "hint");
  #originals;
  #announce = dropdown("announce");

  /**
   * @param {object} options
   * @param {readonly Language[]} options.languages
   * @param {(tag: string) => string} options.nameOf
   * @param {Targets | undefined} [options.targets]
   * @param {boolean} [options.hasOriginals] Whether the original text can be shown.
   * @param {(value: Reading) => void} options.onChange
   */
  constructor({ languages, targets, nameOf, hasOriginals = true, onChange }) {
    this.#nameOf = nameOf;
    this.#sources.dataset.testid = "read-sources";
    this.#onChange = onChange;
    this.#value = savedReading(languages);
    this.#value.originals &&= hasOriginals;
    const saved = loadPreference("announce");
    this.#announceChoice = saved === SILENT ? "" : saved;

    this.#note.role = "status";
    /** @param {Stability} stability */
    const onStability = (stability) => this.#change({ stability });
    this.#stabilities = radioButtons("stability", STABILITIES, "live", onStability);
    this.#explanation.id = "stability-explanation";
    const stabilities = fieldset(t("reading.show"), this.#stabilities, this.#explanation);
    stabilities.setAttribute("aria-describedby", this.#explanation.id);
    const originals = checkbox("panel-check", "originals", t("reading.originals"), (shown) =>
      this.#change({ originals: shown }),
    );
    this.#originals = originals.input;
    originals.label.hidden = !hasOriginals;
    this.#announce.addEventListener("change", () => this.#change({ announce: this.#announce.value }));
    this.element.append(
      fieldset(t("reading.languages"), this.#chips, this.#note, this.#sources),
      stabilities,
      originals.label,
      labelled(t("reading.announce"), this.#announce),
    );
    this.offer(languages, targets);
  }

  /**
   * What the gateway translates now. Languages that are read stay until they are left out.
   * @param {readonly Language[]} languages
   * @param {Targets} [targets]
   */
  offer(languages, targets) {
    const focused = [...this.#languages.values()].find((input) => input === document.activeElement);
    this.#targets = targets;
    this.#offered = new Set(languages.map(({ tag }) => tag));
    this.#languages.clear();
    this.#chips.replaceChildren();
    for (const tag of new Set([...this.#offered, ...this.#value.reads])) {
      const name = this.#nameOf(tag);
      const { label, input } = checkbox("chip", `read-${tag}`, name, () => this.#change({ reads: this.#toggled(tag) }));
      if (nativeName(tag) !== name) label.append(element("span", "own-name", nativeName(tag)));
      this.#languages.set(tag, input);
      this.#chips.append(label);
      // A user who is choosing continues where they were.
      if (input.dataset.testid === focused?.dataset.testid) input.focus();
    }
    this.#show();
  }

  get value() {
    return { ...this.#value, reads: [...this.#value.reads] };
  }

  /**
   * Change the settings for the user: nothing is saved, and `onChange` is not called.
   * @param {Partial<Reading>} value
   */
  set(value) {
    this.#value = { ...this.#value, ...value };
    this.#value.reads = [...new Set(this.#value.reads)].filter((tag) => this.#languages.has(tag));
    if (value.announce !== undefined) this.#announceChoice = value.announce;
    this.#show();
  }

  /** How many languages can be read at a time; those beyond the limit are dropped. @param {number} limit */
  set limit(limit) {
    this.#limit = limit;
    this.set({ reads: this.#value.reads.slice(0, limit) });
  }

  /** Save the languages, to start with them next time. The gateway has accepted them. */
  saveLanguages() {
    savePreference("reads", this.#value.reads.join());
  }

  /** @param {Partial<Reading>} changes */
  #change(changes) {
    this.set(changes);
    const { stability, originals, announce } = changes;
    if (stability) savePreference("stability", stability);
    if (originals !== undefined) savePreference("originals", originals ? "yes" : "no");
    if (announce !== undefined) savePreference("announce", announce || SILENT);
    this.#onChange(this.value);
  }

  /** @param {string} tag */
  #toggled(tag) {
    const { reads } = this.#value;
    return reads.includes(tag) ? reads.filter((read) => read !== tag) : [...reads, tag];
  }

  /** A sentence if not everything is translated into this language. @param {string} tag */
  #limitedTo(tag) {
    if (!this.#targets && this.#offered.has(tag)) return [];
    const sources = Object.entries(this.#targets ?? {}).filter(([, targets]) => targets.includes(tag));
    const names = sources.map(([source]) => this.#nameOf(source));
    const language = this.#nameOf(tag);
    return [
      names.length
        ? t("reading.sources", { language, languages: names.join(t("list.comma")) })
        : t("reading.no_sources", { language }),
    ];
  }

  #show() {
    const { reads, stability, originals } = this.#value;
    const isFull = reads.length >= this.#limit && this.#languages.size > reads.length;
    for (const [tag, input] of this.#languages) {
      input.checked = reads.includes(tag);
      input.disabled = isFull && !input.checked;
    }
    for (const input of this.#stabilities.querySelectorAll("input")) input.checked = input.value === stability;
    this.#originals.checked = originals;
    this.#explanation.textContent = STABILITIES.find(([value]) => value === stability)?.[2] ?? "";
    const limitNote = t("reading.most", { limit: this.#limit });
    this.#note.textContent = isFull ? limitNote : reads.length ? "" : t("reading.untranslated");
    this.#sources.textContent = [untranslated(this.#offered), ...reads.flatMap((tag) => this.#limitedTo(tag))]
      .join(" ")
      .trim();
    const choice = this.#announceChoice;
    const isValid = choice === "" || (choice !== null && reads.includes(choice));
    this.#value.announce = isValid ? choice : (reads[0] ?? "");
    const names = reads.map((tag) => /** @type {const} */ ([tag, this.#nameOf(tag)]));
    setOptions(this.#announce, [["", t("reading.nothing")], ...names], this.#value.announce);
  }
}

/** A sentence if the page's own language is not among these. @param {ReadonlySet<string>} offered */
export function untranslated(offered) {
  const own = pageLanguage();
  return offered.has(own) ? "" : t("reading.no_sources", { language: languageName(own) });
}

/**
 * @param {readonly Language[]} languages
 * @returns {Reading}
 */
function savedReading(languages) {
  const tags = languages.map(({ tag }) => tag);
  const saved = loadPreference("reads");
  let reads = (saved ?? "").split(",").filter((tag) => tags.includes(tag));
  // Nothing is saved at the first visit; with another model, the saved languages may be unknown.
  // One of the languages that the user reads is enough: more are a choice.
  if (saved !== "" && !reads.length) reads = preferredLanguages(languages).slice(0, 1);
  if (saved !== "" && !reads.length) reads = tags.slice(0, 2);
  const stability = STABILITIES.find(([value]) => value === loadPreference("stability"))?.[0] ?? "live";
  return { reads, stability, originals: loadPreference("originals") !== "no", announce: "" };
}
