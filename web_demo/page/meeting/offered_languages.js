// Which languages the gateway translates, and into which: as it said first, then as sessions are told of changes. Must
// not know who reads or speaks them.

import { languageName, t } from "../words/words.js";

/** @import {Language} from "../ui/languages.js" */
/** @import {Targets} from "../settings/reading_settings.js" */

export class OfferedLanguages {
  /** @type {readonly Language[]} */
  all;
  /** @type {Targets | undefined} */
  targets;
  /** Tag → name, also of those that are no longer offered. @type {Map<string, string>} */
  #names;

  /** @param {{languages: readonly Language[], targets?: Targets}} first */
  constructor({ languages, targets }) {
    this.all = languages;
    this.targets = targets;
    this.#names = new Map(languages.map(({ tag, name }) => [tag, name]));
  }

  get tags() {
    return this.all.map(({ tag }) => tag);
  }

  /** @param {string} tag */
  nameOf = (tag) => (tag === "und" ? t("language.unknown") : (this.#names.get(tag) ?? languageName(tag)));

  /** All, and one that a participant speaks: what they say must not go as another language. @param {string} tag */
  with(tag) {
    return tag === "" || this.tags.includes(tag) ? this.all : [...this.all, { tag, name: this.nameOf(tag) }];
  }

  /**
   * Some of the languages, then others until there are enough.
   * @param {readonly string[]} some
   * @param {number} count
   */
  fill(some, count) {
    return [...new Set([...some, ...this.tags])].slice(0, Math.max(count, some.length));
  }

  /**
   * What is offered now.
   * @param {{languages: readonly string[], targets?: Targets}} now Tags.
   * @param {readonly string[]} reads
   * @returns {string | null} Null if that is as before; else a sentence if nothing is translated into one of those
   *   that are read any longer.
   */
  change({ languages, targets }, reads) {
    if (JSON.stringify([languages, targets]) === JSON.stringify([this.tags, this.targets])) return null;
    const before = reads.filter((tag) => isReached(tag, { languages: this.tags, targets: this.targets }));
    this.all = languages.map((tag) => ({ tag, name: this.nameOf(tag) }));
    this.targets = targets;
    const lost = before.filter((tag) => !isReached(tag, { languages, targets })).map(this.nameOf);
    return lost.length ? t("reading.gone", { languages: lost.join(t("list.comma")) }) : "";
  }
}

/**
 * Whether anything is translated into a language.
 * @param {string} tag
 * @param {{languages: readonly string[], targets?: Targets | undefined}} offered
 */
export function isReached(tag, { languages, targets }) {
  if (!targets) return languages.includes(tag);
  return Object.values(targets).some((into) => into.includes(tag));
}
