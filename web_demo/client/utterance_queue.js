// What this client says, until the gateway has accepted it: what is being said, and what was said, oldest first. Knows
// what is next; must not know messages.

import { forgetOldest } from "./evict_oldest.js";
import { Utterance } from "./utterance.js";

// What is said while there is no connection; beyond that the newest is refused, so that what was taken stays whole.
const MOST_FINALS = 1_000;
// Begun and never finished: those begun first are given up.
const MOST_OPEN = 100;
// Accepted utterances that are recognised when they are said again.
const REMEMBERED = 1_000;

export class Outgoing {
  /** @type {Map<string, Utterance>} */
  #open = new Map();
  /** @type {Map<string, Utterance>} */
  #finals = new Map();
  /** Id → revision. @type {Map<string, number>} */
  #accepted = new Map();

  /** @param {string} id */
  find(id) {
    return this.#finals.get(id) ?? this.#open.get(id);
  }

  all() {
    return [...this.#finals.values(), ...this.#open.values()];
  }

  /**
   * Of the finals; none is sent behind it until it is answered, so that none overtakes it.
   * @returns {Utterance | undefined}
   */
  get oldest() {
    return this.#finals.values().next().value;
  }

  /** The finals that are not accepted. */
  get waiting() {
    return [...this.#finals.values()];
  }

  /** What is being said and has a text that was not sent. */
  revised() {
    return [...this.#open.values()].filter((utterance) => utterance.due);
  }

  /**
   * @param {string} text
   * @param {string} lang
   * @param {string | undefined} id
   * @returns {string} The utterance's id.
   */
  revise(text, lang, id) {
    // What a recogniser may still have to say of an utterance that is final is late.
    if (id !== undefined && (this.#finals.has(id) || this.#accepted.has(id))) return id;
    const utterance = this.#begun(id);
    utterance.revise(text, lang);
    this.#open.set(utterance.id, utterance);
    forgetOldest(this.#open, MOST_OPEN);
    return utterance.id;
  }

  /**
   * @param {string} text
   * @param {string} lang
   * @param {string | undefined} id
   * @returns {Utterance} Where there is no room for it, it is not kept.
   */
  conclude(text, lang, id) {
    const utterance = this.#begun(id);
    this.forget(utterance);
    // An accepted one that is said once more is the same revision.
    utterance.rev = Math.max(utterance.rev, (this.#accepted.get(utterance.id) ?? 0) - 1);
    utterance.conclude(text, lang);
    if (this.#finals.size < MOST_FINALS) this.#finals.set(utterance.id, utterance);
    return utterance;
  }

  /** @param {Utterance} utterance */
  accept(utterance) {
    this.forget(utterance);
    this.#accepted.delete(utterance.id);
    this.#accepted.set(utterance.id, utterance.rev);
    forgetOldest(this.#accepted, REMEMBERED);
  }

  /** @param {Utterance} utterance */
  forget(utterance) {
    utterance.hurry();
    this.#open.delete(utterance.id);
    this.#finals.delete(utterance.id);
  }

  /** @param {string | undefined} id */
  #begun(id) {
    return (id === undefined ? undefined : this.#open.get(id)) ?? new Utterance(id);
  }
}
