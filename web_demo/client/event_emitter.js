// Delivers the client's events to its listeners. Knows the order of delivery, and what must not go unheard; must not
// know what else an event means.

/** @import {ClientEvent, ClientEventMap, ListenOptions} from "./events.js" */

/** Outside of browsers an uncaught error says the same. @param {unknown} error */
function report(error) {
  if (typeof reportError === "function") return reportError(error);
  queueMicrotask(() => {
    throw error;
  });
}

/**
 * What a program has to be told even where it does not listen: refusals, and why there is no session.
 * @param {ClientEvent} event
 */
export function complaintOf(event) {
  switch (event.type) {
    case "error":
    case "utterance.refused":
      return event.message;
    case "state":
      return event.state === "closed" || event.state === "loading" || event.code === "unreachable" ? event.reason : "";
    default:
      return "";
  }
}

/** @typedef {(event: ClientEvent) => boolean} Hears */

export class EventEmitter {
  /** Listener → whether an event is heard by it. @type {Map<(event: ClientEvent) => void, Hears>} */
  #listeners = new Map();
  /** The event that is being delivered, and those that were emitted meanwhile. @type {ClientEvent[]} */
  #queue = [];
  /** What was last written to the console. */
  #complaint = "";

  /**
   * Listen to one type of events.
   * @template {keyof ClientEventMap} T
   * @param {T} type
   * @param {(event: ClientEventMap[T]) => void} listener
   * @param {ListenOptions} [options]
   * @returns {() => void} Removes the listener.
   */
  on(type, listener, options) {
    const isOfType = (/** @type {ClientEvent} */ event) => event.type === type;
    const deliver = (/** @type {any} */ event) => isOfType(event) && listener(event);
    return this.#add(deliver, isOfType, options);
  }

  /**
   * Listen to all events.
   * @param {(event: ClientEvent) => void} listener
   * @param {ListenOptions} [options]
   * @returns {() => void} Removes the listener.
   */
  listen(listener, options) {
    return this.#add(listener, () => true, options);
  }

  /**
   * As `listen`, for a listener that passes on some events only. The others go unheard.
   * @param {(event: ClientEvent) => void} listener
   * @param {Hears} hears Asked before the event is delivered.
   * @returns {() => void} Removes the listener.
   */
  follow(listener, hears) {
    return this.#add(listener, hears);
  }

  /**
   * @param {(event: ClientEvent) => void} listener
   * @param {Hears} hears
   * @param {ListenOptions} [options]
   */
  #add(listener, hears, { signal } = {}) {
    // The same function may be given twice. A client with the same signal hears of it first, and tells its listeners.
    const deliver = (/** @type {ClientEvent} */ event) => signal?.aborted || listener(event);
    const remove = () => {
      this.#listeners.delete(deliver);
      signal?.removeEventListener("abort", remove);
    };
    if (signal?.aborted) return remove;
    this.#listeners.set(deliver, hears);
    signal?.addEventListener("abort", remove);
    return remove;
  }

  /**
   * Deliver an event to every listener. An event that a listener causes is delivered after the current one, so that
   * all listeners see the same order.
   * @param {ClientEvent} event
   */
  emit(event) {
    if (this.#queue.push(event) > 1) return;
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      let isHeard = false;
      for (const [listener, hears] of [...this.#listeners]) {
        isHeard ||= hears(next);
        try {
          listener(next);
        } catch (error) {
          // An error in one listener must not keep the event from the others.
          report(error);
        }
      }
      if (!isHeard) this.#complain(next);
      this.#queue.shift();
    }
  }

  /**
   * What no listener hears is written to the console, but not twice in a row: as a warning where the client tries again.
   * @param {ClientEvent} event
   */
  #complain(event) {
    const complaint = complaintOf(event);
    if (complaint === "" || complaint === this.#complaint) return;
    this.#complaint = complaint;
    const isTriedAgain = event.type === "state" && event.state !== "closed";
    console[isTriedAgain ? "warn" : "error"](`translation-gateway: ${complaint}`);
  }
}
