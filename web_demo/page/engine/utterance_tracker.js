// Measures each utterance: when it was said, accepted and translated. Knows the events of clients and their times; must
// not know elements. What was said before a client listened is not tracked.

/** @import {ClientEvent} from "../../client/events.js" */
/** @import {Caption, Timings, TranslationDelta, TranslationFailed, TranslationFinal} from "../../client/messages.js" */
/** @typedef {{firstTokenMs: number | null, endMs: number | null, outcome: "translated" | "failed" | "unknown"}} Translation */

/**
 * All times are those of `performance.now()`, and null before they are known.
 * @typedef {object} TrackedUtterance
 * @property {string} key
 * @property {string} source Whose client heard it.
 * @property {boolean} isSimulated
 * @property {string} participant
 * @property {string} speaker
 * @property {string} lang
 * @property {number} rev
 * @property {Map<string, Translation>} langs Its translations, by language.
 * @property {number} beganMs When it was first heard of.
 * @property {number} lastEventMs
 * @property {number | null} spokenMs When its first words were said; null if it came complete.
 * @property {number | null} acceptedMs When the gateway accepted it.
 * @property {number | null} firstTokenMs
 * @property {number | null} endMs When its last translation ended.
 * @property {boolean} failed Whether a translation failed.
 */

/** The source that is the page's own meeting. All others are simulated speakers. */
export const OWN_MEETING = "meeting";
const KEPT_MS = 60_000;
const MAX_UTTERANCES = 600;
// The gateway tells about almost everything that ends. Some utterances just stay silent: a language that it refused to
// translate into, or a speaker who left while the connection was lost.
const SILENT_MS = 15_000;

export class UtteranceTracker {
  /** @type {Map<string, TrackedUtterance>} */
  #utterances = new Map();
  /** @type {Map<string, {reads: readonly string[], own: string, recovered: boolean, catchingUp: boolean}>} */
  #sources = new Map();
  #onTranslated;

  /** @param {(timings: Timings, nowMs: number) => void} [onTranslated] Called with every translation. */
  constructor(onTranslated = () => {}) {
    this.#onTranslated = onTranslated;
  }

  /** How many utterances are accepted and not completely translated. */
  get inFlight() {
    return this.#unended.filter((utterance) => utterance.acceptedMs !== null).length;
  }

  /** How many utterances are still being said. */
  get speaking() {
    return this.#unended.filter((utterance) => utterance.acceptedMs === null).length;
  }

  /** Languages into which something is being translated now. */
  get languagesRunning() {
    const translations = this.#unended.flatMap(({ langs }) => [...langs]);
    return new Set(translations.filter(([, { endMs }]) => endMs === null).map(([lang]) => lang));
  }

  /**
   * Utterances that fall between two times, even in part, in the order in which they began.
   * @param {number} fromMs
   * @param {number} toMs
   */
  visible(fromMs, toMs) {
    return [...this.#utterances.values()]
      .filter(({ beganMs, endMs }) => (endMs ?? toMs) >= fromMs && beganMs <= toMs)
      .sort((one, other) => one.beganMs - other.beganMs);
  }

  /**
   * End utterances that were silent for too long.
   * @param {number} nowMs
   */
  endSilent(nowMs) {
    const isSilent = (/** @type {TrackedUtterance} */ { lastEventMs }) => nowMs - lastEventMs >= SILENT_MS;
    this.#remove((utterance) => utterance.acceptedMs === null && isSilent(utterance));
    for (const utterance of this.#unended.filter(isSilent)) {
      for (const translation of utterance.langs.values()) translation.endMs ??= utterance.lastEventMs + SILENT_MS;
      endIfComplete(utterance);
    }
  }

  /**
   * The languages that a source reads when it starts. Its events tell about later changes.
   * @param {string} source
   * @param {readonly string[]} tags
   */
  setReads(source, tags) {
    this.#source(source).reads = [...tags];
  }

  /**
   * @param {string} name Name of the source.
   * @param {ClientEvent} event
   * @param {number} nowMs
   */
  onEvent(name, event, nowMs) {
    const source = this.#source(name);
    switch (event.type) {
      case "session.started":
        source.own = event.participant;
        source.recovered = event.recovered === true;
        source.catchingUp = true;
        // A new session hears nothing more about what the last one waited for.
        if (!source.recovered) this.#remove((utterance) => utterance.source === name);
        return;
      case "session.updated":
        source.reads = event.reads;
        return;
      case "pong": // comes after everything that was missed
        source.catchingUp = false;
        return;
      case "utterance.cancelled":
        return this.#remove(({ key }) => key === keyOf(name, event.participant, event.utterance));
      case "utterance.replaced": {
        const keys = event.utterances.map((id) => keyOf(name, event.participant, id));
        return this.#remove(({ key }) => keys.includes(key));
      }
      case "participant.left":
        return this.#remove(({ participant, acceptedMs }) => participant === event.participant && acceptedMs === null);
      case "utterance.refused":
        return this.#remove(({ key }) => key === keyOf(name, source.own, event.id));
      case "state":
        if (event.state !== "closed") return;
        this.#remove((utterance) => utterance.source === name);
        if (name !== OWN_MEETING) this.#sources.delete(name);
        return;
      case "caption":
        return this.#onCaption(name, event, nowMs);
      case "translation.delta":
      case "translation.final":
      case "translation.failed":
        return this.#onTranslation(name, event, nowMs);
    }
  }

  /**
   * @param {string} name
   * @param {Caption} caption
   * @param {number} nowMs
   */
  #onCaption(name, caption, nowMs) {
    const source = this.#source(name);
    const { participant, speaker } = caption;
    const key = keyOf(name, participant, caption.utterance);
    let utterance = this.#utterances.get(key);
    if (utterance === undefined) {
      // One's own utterances in a new session are never history.
      const isNew = participant === source.own && !source.recovered;
      if (!isNew && caption.final && source.catchingUp) return;
      utterance = this.#begin({ key, source: name, participant, speaker }, nowMs);
    }
    utterance.lastEventMs = nowMs;
    if (utterance.acceptedMs !== null) return;
    utterance.lang = caption.lang;
    utterance.rev = caption.rev;
    if (!caption.final) {
      utterance.spokenMs ??= nowMs;
      return;
    }
    utterance.acceptedMs = nowMs;
    // It is translated into the languages that are read now, not those that were read while it was being said.
    utterance.langs = new Map();
    for (const lang of source.reads) if (lang !== caption.lang) addTranslation(utterance, lang);
    endIfComplete(utterance);
  }

  /**
   * @param {string} name
   * @param {TranslationDelta | TranslationFinal | TranslationFailed} event
   * @param {number} nowMs
   */
  #onTranslation(name, event, nowMs) {
    const utterance = this.#utterances.get(keyOf(name, event.participant, event.utterance));
    if (utterance === undefined) return;
    if (utterance.acceptedMs === null) {
      utterance.lastEventMs = nowMs;
      addTranslation(utterance, event.lang);
      return;
    }
    const translation = utterance.langs.get(event.lang);
    if (translation === undefined || translation.outcome !== "unknown") return;
    utterance.lastEventMs = nowMs;
    translation.endMs = utterance.endMs = null; // it may have been ended as silent
    if (event.type === "translation.delta") {
      if (event.rev < utterance.rev) return;
      translation.firstTokenMs ??= nowMs;
      utterance.firstTokenMs ??= nowMs;
      return;
    }
    if (event.type === "translation.failed") {
      translation.outcome = "failed";
      utterance.failed = true;
      translation.endMs = nowMs;
    } else {
      const { timings } = event;
      // Messages take time to arrive, so the earliest of all estimates of the acceptance is the best.
      const estimateMs = Math.max(nowMs - timings.total_ms, utterance.spokenMs ?? -Infinity);
      const acceptedMs = Math.min(utterance.acceptedMs, estimateMs);
      utterance.acceptedMs = acceptedMs;
      utterance.beganMs = utterance.spokenMs ?? acceptedMs;
      translation.firstTokenMs = acceptedMs + timings.first_token_ms;
      translation.endMs = acceptedMs + timings.total_ms;
      translation.outcome = "translated";
      utterance.firstTokenMs = Math.min(...[...utterance.langs.values()].map((one) => one.firstTokenMs ?? Infinity));
      this.#onTranslated(timings, nowMs);
    }
    endIfComplete(utterance);
  }

  get #unended() {
    return [...this.#utterances.values()].filter(({ endMs }) => endMs === null);
  }

  /**
   * @param {Pick<TrackedUtterance, "key" | "source" | "participant" | "speaker">} origin
   * @param {number} nowMs
   */
  #begin(origin, nowMs) {
    this.endSilent(nowMs);
    for (const [old, { endMs }] of this.#utterances) {
      if (nowMs - (endMs ?? nowMs) > KEPT_MS || this.#utterances.size >= MAX_UTTERANCES) this.#utterances.delete(old);
    }
    /** @type {TrackedUtterance} */
    const utterance = {
      ...{ ...origin, isSimulated: origin.source !== OWN_MEETING, lang: "", rev: 0, langs: new Map(), failed: false },
      ...{ beganMs: nowMs, lastEventMs: nowMs, spokenMs: null, acceptedMs: null, firstTokenMs: null, endMs: null },
    };
    this.#utterances.set(origin.key, utterance);
    return utterance;
  }

  /** Remove utterances that have not ended. @param {(utterance: TrackedUtterance) => boolean} condition */
  #remove(condition) {
    for (const utterance of this.#unended) if (condition(utterance)) this.#utterances.delete(utterance.key);
  }

  /** @param {string} name */
  #source(name) {
    const source = this.#sources.get(name) ?? { reads: [], own: "", recovered: false, catchingUp: false };
    this.#sources.set(name, source);
    return source;
  }
}

/**
 * @param {string} source
 * @param {string} participant
 * @param {string} utterance
 */
function keyOf(source, participant, utterance) {
  return `${source}/${participant}/${utterance}`;
}

/**
 * @param {TrackedUtterance} utterance
 * @param {string} lang
 */
function addTranslation({ langs }, lang) {
  if (!langs.has(lang)) langs.set(lang, { firstTokenMs: null, endMs: null, outcome: "unknown" });
}

/** It ends with its last translation, or at once if no participant reads one. @param {TrackedUtterance} utterance */
function endIfComplete(utterance) {
  const ends = [...utterance.langs.values()].map(({ endMs }) => endMs);
  if (!ends.includes(null)) utterance.endMs = Math.max(utterance.acceptedMs ?? -Infinity, ...ends.map(Number));
}
