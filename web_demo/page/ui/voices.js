// Each speaker's colour and shape, by the order in which they first spoke: 36 pairs, then they come again.

import { evictOldest } from "../../client/evict_oldest.js";

/** @typedef {{colour: number, shape: number}} Voice Which of the colours and shapes, from 1 to 6. */

const COUNT = 6;

export class Voices {
  #most;
  /** Participant → how many spoke before they first did; the one who spoke last is last. @type {Map<string, number>} */
  #orders = new Map();
  /** Name → the same: after a reload a person is another participant. @type {Map<string, number>} */
  #named = new Map();
  #heard = 0;

  /** @param {number} [most] How many speakers keep theirs. */
  constructor(most = Infinity) {
    this.#most = most;
  }

  /**
   * The seventh speaker has the first colour with the second shape, and so on.
   * @param {object} who
   * @param {string} who.participant
   * @param {string} [who.speaker] The name by which they are known again; empty if they are not.
   * @returns {Voice}
   */
  of({ participant, speaker = "" }) {
    const order = this.#orders.get(participant) ?? this.#named.get(speaker) ?? this.#heard++;
    this.#orders.delete(participant);
    this.#orders.set(participant, order);
    evictOldest(this.#orders, this.#most);
    if (speaker) this.#named.set(speaker, order);
    evictOldest(this.#named, this.#most);
    return { colour: (order % COUNT) + 1, shape: ((order + Math.floor(order / COUNT)) % COUNT) + 1 };
  }
}

/** Give a row the colour and the shape of its speaker. @param {HTMLElement} row @param {Voice} voice */
export function showVoice(row, { colour, shape }) {
  row.style.setProperty("--voice", `var(--voice-${colour})`);
  row.dataset["shape"] = String(shape);
}
