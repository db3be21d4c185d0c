// Each speaker's colour and shape, by the order in which they first spoke: 36 pairs, then they come again.

import { element } from "../ui/dom.js";

const COUNT = 6;

export class Voices {
  /** @type {Map<string, number>} */
  #order = new Map();

  /**
   * @param {string} participant
   * @returns {{colour: number, shape: number}} From 1 to 6.
   */
  of(participant) {
    const place = this.#order.get(participant) ?? this.#order.size;
    this.#order.set(participant, place);
    return { colour: (place % COUNT) + 1, shape: ((place + Math.floor(place / COUNT)) % COUNT) + 1 };
  }

  /**
   * The sign before a speaker's name.
   * @param {string} participant
   */
  sign(participant) {
    const { shape, colour } = this.of(participant);
    const sign = element("i", "voice-shape");
    Object.assign(sign.dataset, { shape, colour });
    return sign;
  }
}
