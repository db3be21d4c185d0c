// What a session is told about its user: name, languages, stability and options of the translation. Knows when a
// `session.update` is due and what it contains; must not know connections.

import { NegotiatedSetting } from "./session/negotiated_setting.js";
import { refusalDelayMs } from "./session/refusal_delay.js";

/** @import {Formality, GatewayError, Glossary, Stability} from "./messages.js" */

/**
 * @typedef {object} Settings
 * @property {string} [name]
 * @property {string | null} [speaks]
 * @property {readonly string[]} [reads]
 * @property {Stability} [stability]
 * @property {boolean} [originals]
 * @property {Glossary} [glossary]
 * @property {string} [context]
 * @property {Formality | null} [formality]
 * @property {boolean} [record]
 */

/** @typedef {Pick<Settings, "glossary" | "context" | "formality" | "originals">} TranslationOptions */

/** @param {[string, NegotiatedSetting<any>][]} settings */
function request(settings) {
  return Object.fromEntries(settings.map(([name, setting]) => [name, setting.request()]));
}

export class SessionSettings {
  name;
  speaks;
  reads;
  stability;
  originals;
  #glossary;
  #context;
  #formality;
  /** Whether the meeting has to be recorded, or must not be; no update changes it. */
  #record;
  /** Whether a `session.update` is not answered yet, or was refused and waits to be sent again. */
  #isUpdating = false;
  /** How many times in a row the update was refused. */
  #refusals = 0;
  /** @type {number | undefined} */
  #retryTimer;

  /** @param {Settings} wanted */
  constructor({ name, speaks, reads, stability, originals, glossary, context, formality, record }) {
    this.name = new NegotiatedSetting(name ?? "");
    this.speaks = new NegotiatedSetting(/** @type {string | null} */ (speaks ?? null));
    this.reads = new NegotiatedSetting(/** @type {readonly string[]} */ ([...(reads ?? [])]));
    this.stability = new NegotiatedSetting(/** @type {Stability} */ (stability ?? "live"));
    this.originals = new NegotiatedSetting(originals ?? false);
    this.#glossary = new NegotiatedSetting(/** @type {Glossary} */ (glossary ?? {}));
    this.#context = new NegotiatedSetting(context ?? "");
    this.#formality = new NegotiatedSetting(/** @type {Formality | null} */ (formality ?? null));
    this.#record = record;
  }

  /** @returns {[string, NegotiatedSetting<any>][]} */
  get #always() {
    return Object.entries({
      reads: this.reads,
      stability: this.stability,
      speaks: this.speaks,
      originals: this.originals,
    });
  }

  /** @returns {[string, NegotiatedSetting<any>][]} */
  get #updatable() {
    const options = { glossary: this.#glossary, context: this.#context, formality: this.#formality };
    return [...this.#always, ...Object.entries(options)];
  }

  /** @returns {[string, NegotiatedSetting<any>][]} */
  get #all() {
    return [...this.#updatable, ["name", this.name]];
  }

  /** Whether a setting changed that only a new `session.start` can tell the gateway. */
  get needRestart() {
    return (
      this.name.isChanged ||
      [this.speaks, this.#formality].some(({ isChanged, wanted }) => isChanged && wanted === null)
    );
  }

  /**
   * Whether an error may answer the `session.update`: it names a setting, or nothing. What answers a host's command
   * names something else, or is `forbidden` as a whole.
   * @param {GatewayError} error
   */
  mayRefuseUpdate({ code, field }) {
    if (!this.#isUpdating) return false;
    return field ? this.#updatable.some(([name]) => field.startsWith(name)) : code !== "forbidden";
  }

  /** @param {Settings} wanted What is left out stays as it was. */
  want(wanted) {
    const values = new Map(Object.entries(wanted));
    for (const [name, setting] of this.#all) if (values.get(name) !== undefined) setting.wanted = values.get(name);
  }

  /**
   * The settings for a `session.start`.
   * @param {boolean} isShort Whether it must not be long, because it has a token. An update brings the rest.
   */
  requestAll(isShort) {
    const settings = { ...request(this.#always), name: this.name.request() };
    const glossary = this.#glossary.request(isShort ? {} : this.#glossary.wanted);
    const context = this.#context.request(isShort ? "" : this.#context.wanted);
    const formality = this.#formality.request();
    return {
      ...settings,
      ...(Object.keys(glossary).length > 0 && { glossary }),
      ...(context && { context }),
      ...(formality && { formality }),
      ...(this.#record !== undefined && { record: this.#record }),
    };
  }

  /** The settings for a `session.update`; null when nothing changed, or when one is not answered yet. */
  requestChanged() {
    const changed = this.#updatable.filter(([, setting]) => setting.isChanged);
    if (changed.length === 0 || this.#isUpdating) return null;
    this.#isUpdating = true;
    return request(changed);
  }

  /** The meeting is not recorded: the first client to return after it was lost begins it again as such. */
  keepUnrecorded() {
    this.#record = false;
  }

  /** A session started or was updated with what was requested. */
  confirm() {
    for (const [, setting] of this.#all) setting.confirm();
    this.endUpdate();
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
    this.#retryTimer = setTimeout(
      () => {
        this.#isUpdating = false;
        onDue();
      },
      refusalDelayMs(error, this.#refusals),
    );
  }

  /**
   * The gateway refused the setting that the error names, or all of them.
   * @param {GatewayError} error
   * @returns {boolean} Whether there are different values to continue with.
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
