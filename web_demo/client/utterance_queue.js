// The utterances of this client that the gateway has not accepted: those that are still being said, and the finals,
// oldest first. Knows which one is next; must not know messages.

import { evictOldest } from "./evict_oldest.js";
import { Utterance } from "./utterance.js";

/** @import {Said} from "./utterance.js" */

// How many finals can wait while there is no connection. The next one is refused, so that those before it stay complete
// and in order.
const MAX_FINALS = 1_000;
// How many utterances can be unfinished. The oldest is dropped.
const MAX_OPEN = 100;
// How many accepted utterances are recognised when they are said again.
const MAX_ACCEPTED = 1_000;

export class UtteranceQueue {
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

  /** The oldest final. @returns {Utterance | undefined} */
  get oldest() {
    return this.#finals.values().next().value;
  }

  /** @param {string} id */
  isAccepted(id) {
    return this.#accepted.has(id);
  }

  /** The finals that are not accepted. */
  get finals() {
    return [...this.#finals.values()];
  }

  muteOpen() {
    for (const utterance of this.#open.values()) utterance.mute();
  }

  /** Unfinished utterances with a text that is due to be sent. */
  revised() {
    return [...this.#open.values()].filter((utterance) => utterance.due);
  }

  /**
   * @param {Said} said
   * @returns {string} The utterance's id.
   */
  revise({ text, lang = "", id, ...times }) {
    // A speech recogniser may revise an utterance that is final already. That comes too late.
    if (id !== undefined && (this.#finals.has(id) || this.#accepted.has(id))) return id;
    const utterance = this.#findOpen(id);
    utterance.revise(text, lang, times);
    this.#open.set(utterance.id, utterance);
    evictOldest(this.#open, MAX_OPEN);
    return utterance.id;
  }

  /**
   * @param {Said} said
   * @returns {Utterance} If the queue is full, it is not in it.
   */
  conclude({ text, lang = "", id, ...times }) {
    const utterance = this.#findOpen(id);
    this.remove(utterance);
    // An accepted utterance that is said again keeps its revision.
    utterance.rev = Math.max(utterance.rev, (this.#accepted.get(utterance.id) ?? 0) - 1);
    utterance.conclude(text, lang, times);
    if (this.#finals.size < MAX_FINALS) this.#finals.set(utterance.id, utterance);
    return utterance;
  }

  /** @param {Utterance} utterance */
  accept(utterance) {
    this.remove(utterance);
    this.#accepted.delete(utterance.id);
    this.#accepted.set(utterance.id, utterance.rev);
    evictOldest(this.#accepted, MAX_ACCEPTED);
  }

  /** @param {Utterance} utterance */
  remove(utterance) {
    utterance.stopWaiting();
    this.#open.delete(utterance.id);
    this.#finals.delete(utterance.id);
  }

  /** An unfinished utterance, or a new one. @param {string | undefined} id */
  #findOpen(id) {
    return (id === undefined ? undefined : this.#open.get(id)) ?? new Utterance(id);
  }
}
