// What a session is told about its user: name, languages and stability. Knows when a `session.update` is due and what
// it contains; must not know connections.

import { NegotiatedSetting } from "./negotiated_setting.js";
import { retryDelayMs } from "./retry_delay.js";

/** @import {GatewayError, Stability} from "./messages.js" */

/** @param {[string, NegotiatedSetting<any>][]} settings */
function request(settings) {
  return Object.fromEntries(settings.map(([name, setting]) => [name, setting.request()]));
}

export class SessionSettings {
  name;
  speaks;
  reads;
  stability;
  #originals;
  /** Whether a `session.update` is not answered yet, or was refused and waits to be sent again. */
  #isUpdating = false;
  /** How many times in a row the update was refused. */
  #refusals = 0;
  /** @type {number | undefined} */
  #retryTimer;

  /**
   * @param {{name: string, speaks: string | null, reads: readonly string[], stability: Stability, originals: boolean}} wanted
   */
  constructor({ name, speaks, reads, stability, originals }) {
    this.#originals = originals;
    this.reads = new NegotiatedSetting(/** @type {readonly string[]} */ ([...reads]));
    this.stability = new NegotiatedSetting(/** @type {Stability} */ (stability));
    this.speaks = new NegotiatedSetting(/** @type {string | null} */ (speaks));
    this.name = new NegotiatedSetting(/** @type {string} */ (name));
  }

  /** @returns {[string, NegotiatedSetting<any>][]} */
  get #updatable() {
    return Object.entries({ reads: this.reads, stability: this.stability, speaks: this.speaks });
  }

  /** @returns {[string, NegotiatedSetting<any>][]} */
  get #all() {
    return [...this.#updatable, ["name", this.name]];
  }

  /** Whether a setting changed that only a new `session.start` can tell the gateway. */
  get needRestart() {
    return this.name.isChanged || (this.speaks.isChanged && this.speaks.wanted === null);
  }

  get isUpdating() {
    return this.#isUpdating;
  }

  /** The settings for a `session.start`. */
  requestAll() {
    return { ...request(this.#all), originals: this.#originals };
  }

  /** The settings for a `session.update`; null when nothing changed, or when one is not answered yet. */
  requestChanged() {
    const changed = this.#updatable.filter(([, setting]) => setting.isChanged);
    if (changed.length === 0 || this.#isUpdating) return null;
    this.#isUpdating = true;
    return request(changed);
  }

  /** A session started or was updated with what was requested. */
  confirm() {
    for (const [, setting] of this.#all) setting.confirm();
  }

  /** The `session.update` is answered, or its connection is lost. */
  endUpdate() {
    clearTimeout(this.#retryTimer);
    this.#isUpdating = false;
    this.#refusals = 0;
  }

  /**
   * The gateway refused a `session.update` for the moment.
   * @param {GatewayError} error
   * @param {() => void} onDue Called when it is time to send it again.
   */
  retryUpdate(error, onDue) {
    this.withdraw();
    this.#refusals += 1;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => {
      this.#isUpdating = false;
      onDue();
    }, retryDelayMs(error, this.#refusals));
  }

  /**
   * The gateway refused the setting that the error names, or all of them.
   * @param {GatewayError} error
   * @returns {boolean} Whether there are different values to go on with.
   */
  refuse(error) {
    const named = this.#all.filter(([name]) => error.field?.startsWith(name));
    const refused = (named.length ? named : this.#all).map(([, setting]) => setting.refuse());
    this.withdraw();
    return refused.includes(true);
  }

  /** What was requested was not answered. */
  withdraw() {
    for (const [, setting] of this.#all) setting.withdraw();
  }

  endSession() {
    for (const [, setting] of this.#all) setting.endSession();
  }
}
