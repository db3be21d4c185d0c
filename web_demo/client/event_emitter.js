// Delivers the client's events to its listeners. Knows the order of delivery, and what must not go unheard; must not
// know what else an event means.

import { endOf } from "./line_reader.js";

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

// In place of the type of events: a loop follows them, or they are kept for one.
const LOOP = "*";
const KEPT = "-";

export class EventEmitter {
  /** Listener → the type of its events; null: all of them. @type {Map<(event: any) => void, string | null>} */
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
    return this.#add(type, listener, options);
  }

  /**
   * Listen to all events.
   * @param {(event: ClientEvent) => void} listener
   * @param {ListenOptions} [options]
   * @returns {() => void} Removes the listener.
   */
  listen(listener, options) {
    return this.#add(null, listener, options);
  }

  /**
   * As `listen`, for a loop, which throws what ends it. Everything else goes unheard.
   * @param {(event: ClientEvent) => void} listener
   * @returns {() => void} Removes the listener.
   */
  follow(listener) {
    return this.#add(LOOP, listener);
  }

  /**
   * As `follow`, for a loop that may begin later: until then, nothing is heard.
   * @param {(event: ClientEvent) => void} listener
   * @returns {() => void} Removes the listener.
   */
  overhear(listener) {
    return this.#add(KEPT, listener);
  }

  /**
   * @param {string | null} type
   * @param {(event: any) => void} listener
   * @param {ListenOptions} [options]
   */
  #add(type, listener, { signal } = {}) {
    // The same function may be given twice, for two types.
    const deliver = (/** @type {any} */ event) => listener(event);
    const remove = () => {
      this.#listeners.delete(deliver);
      signal?.removeEventListener("abort", remove);
    };
    if (signal?.aborted) return remove;
    this.#listeners.set(deliver, type);
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
      for (const [listener, type] of [...this.#listeners]) {
        if (type !== null && type !== LOOP && type !== KEPT && type !== next.type) continue;
        isHeard ||= type === LOOP ? endOf(next) !== null : type !== KEPT;
        try {
          listener(next);
        } catch (error) {
          // An error in one listener must not keep the event from the others.
          report(error);
        }
      }
      if (!isHeard) this.#complain(complaintOf(next));
      this.#queue.shift();
    }
  }

  /** What nobody listens to is written to the console, once in a row. @param {string} complaint */
  #complain(complaint) {
    if (complaint === "" || complaint === this.#complaint) return;
    this.#complaint = complaint;
    console.error(`translation-gateway: ${complaint}`);
  }
}
