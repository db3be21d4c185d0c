// Delivers the client's events to its listeners. Knows the order of delivery; must not know what an event means.

/** @import {ClientEvent} from "./events.js" */

/** Outside of browsers an uncaught error says the same. @param {unknown} error */
function report(error) {
  if (typeof reportError === "function") return reportError(error);
  queueMicrotask(() => {
    throw error;
  });
}

export class EventEmitter {
  /** @type {Set<(event: ClientEvent) => void>} */
  #listeners = new Set();
  /** The event that is being delivered, and those that were emitted meanwhile. @type {ClientEvent[]} */
  #queue = [];

  /**
   * @param {(event: ClientEvent) => void} listener
   * @returns {() => void} Removes the listener.
   */
  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Deliver an event to every listener. An event that a listener causes is delivered after the current one, so that
   * all listeners see the same order.
   * @param {ClientEvent} event
   */
  emit(event) {
    if (this.#queue.push(event) > 1) return;
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      for (const listener of [...this.#listeners]) {
        try {
          listener(next);
        } catch (error) {
          // An error in one listener must not keep the event from the others.
          report(error);
        }
      }
      this.#queue.shift();
    }
  }
}
