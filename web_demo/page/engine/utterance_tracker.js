// Utterances on their way: when each was said, accepted, begun and translated. Knows what clients hear and when; must
// not know elements. What was said before somebody listened is no flight.

/** @import {ClientEvent} from "../../client/events.js" */
/** @import {Timings} from "../../client/messages.js" */
/**
 * One language of a flight. Its outcome is known when it has ended, unless the gateway fell silent about it.
 * @typedef {{firstTokenMs: number | null, endMs: number | null, outcome: "translated" | "failed" | "unknown"}} Leg
 */

/**
 * Times are those of `performance.now()`. It is `spokenMs` with its first words (null where it came whole), `arrivedMs`
 * when its final is the gateway's duty, and ends with the last of the languages that its source reads.
 * @typedef {{key: string, source: string, load: boolean, participant: string, speaker: string, lang: string,
 *   rev: number, langs: Map<string, Leg>, beganMs: number, heardMs: number, spokenMs: number | null,
 *   arrivedMs: number | null, firstTokenMs: number | null, endMs: number | null, failed: boolean}} Flight
 */

/** The source that is the page's own meeting; every other is a simulated speaker. */
export const MEETING = "meeting";
const KEPT_MS = 60_000;
const MOST = 600;
// Of what is given up the gateway tells. This is for what nobody tells: a language that it refused to translate into, a
// speaker who was away when the connection was.
const SILENT_MS = 15_000;

export class Flights {
  /** @type {Map<string, Flight>} */
  #flights = new Map();
  /** @type {Map<string, {reads: readonly string[], own: string, recovered: boolean, catchingUp: boolean}>} */
  #sources = new Map();
  #translated;

  /** @param {(flight: Flight, timings: Timings, nowMs: number) => void} [translated] Told of every translation. */
  constructor(translated = () => {}) {
    this.#translated = translated;
  }

  /** Accepted, and not ended. */
  get inFlight() {
    return this.#unended.filter((flight) => flight.arrivedMs !== null).length;
  }

  get speaking() {
    return this.#unended.filter((flight) => flight.arrivedMs === null).length;
  }

  /** Languages into which something is being translated now. */
  get languagesRunning() {
    const legs = this.#unended.flatMap(({ langs }) => [...langs]);
    return new Set(legs.filter(([, { endMs }]) => endMs === null).map(([lang]) => lang));
  }

  /**
   * Those of which something falls between two times, in the order in which they began.
   * @param {number} fromMs
   * @param {number} toMs
   */
  visible(fromMs, toMs) {
    return [...this.#flights.values()]
      .filter(({ beganMs, endMs }) => (endMs ?? toMs) >= fromMs && beganMs <= toMs)
      .sort((one, other) => one.beganMs - other.beganMs);
  }

  /**
   * Wait no more for what nothing was heard of for long.
   * @param {number} nowMs
   */
  giveUp(nowMs) {
    const silent = (/** @type {Flight} */ { heardMs }) => nowMs - heardMs >= SILENT_MS;
    this.#drop((flight) => flight.arrivedMs === null && silent(flight));
    for (const flight of this.#unended.filter(silent)) {
      for (const leg of flight.langs.values()) leg.endMs ??= flight.heardMs + SILENT_MS;
      land(flight);
    }
  }

  /**
   * What a source reads when it starts; what it changes that to is heard.
   * @param {string} source
   * @param {readonly string[]} tags
   */
  reads(source, tags) {
    this.#source(source).reads = [...tags];
  }

  /**
   * @param {string} name Of the source.
   * @param {ClientEvent} event
   * @param {number} nowMs
   */
  hear(name, event, nowMs) {
    const source = this.#source(name);
    switch (event.type) {
      case "session.started":
        source.own = event.participant;
        source.recovered = event.recovered === true;
        source.catchingUp = true;
        // Another session hears nothing more of what the last one waited for.
        if (!source.recovered) this.#drop((flight) => flight.source === name);
        return;
      case "session.updated":
        source.reads = event.reads;
        return;
      case "pong": // is behind all that was missed
        source.catchingUp = false;
        return;
      case "utterance.cancelled":
        return this.#drop(({ key }) => key === `${name}/${event.participant}/${event.utterance}`);
      case "participant.left":
        return this.#drop((flight) => flight.participant === event.participant && flight.arrivedMs === null);
      case "utterance.refused":
        return this.#drop(({ key }) => key === `${name}/${source.own}/${event.id}`);
      case "state":
        if (event.state !== "closed") return;
        this.#drop((flight) => flight.source === name);
        if (name !== MEETING) this.#sources.delete(name);
        return;
    }
    if (!("participant" in event && "utterance" in event)) return;
    const key = `${name}/${event.participant}/${event.utterance}`;
    let flight = this.#flights.get(key);

    if (event.type === "caption") {
      if (flight === undefined) {
        // Nothing of its own was said before a session began.
        const fresh = event.participant === source.own && !source.recovered;
        if (!fresh && event.final && source.catchingUp) return;
        const { participant, speaker } = event;
        flight = this.#begin({ key, source: name, participant, speaker }, nowMs);
      }
      flight.heardMs = nowMs;
      if (flight.arrivedMs !== null) return;
      flight.lang = event.lang;
      flight.rev = event.rev;
      if (!event.final) {
        flight.spokenMs ??= nowMs;
        return;
      }
      flight.arrivedMs = nowMs;
      // It is owed what is read now, whatever was tried while it was being said.
      flight.langs = new Map();
      for (const lang of source.reads) if (lang !== event.lang) awaitIn(flight, lang);
      return land(flight);
    }

    if (flight === undefined) return;
    if (flight.arrivedMs === null) {
      flight.heardMs = nowMs;
      awaitIn(flight, event.lang);
      return;
    }
    const leg = flight.langs.get(event.lang);
    if (leg === undefined || leg.outcome !== "unknown") return;
    flight.heardMs = nowMs;
    leg.endMs = flight.endMs = null; // it was given up too early
    if (event.type === "translation.delta") {
      if (event.rev < flight.rev) return;
      leg.firstTokenMs ??= nowMs;
      flight.firstTokenMs ??= nowMs;
      return;
    }
    if (event.type === "translation.failed") {
      leg.outcome = "failed";
      flight.failed = true;
      leg.endMs = nowMs;
    } else {
      const { timings } = event;
      // The way here takes its time: of all that tell when it was accepted, the earliest is nearest.
      const acceptedMs = Math.max(nowMs - timings.total_ms, flight.spokenMs ?? -Infinity);
      const arrivedMs = Math.min(flight.arrivedMs, acceptedMs);
      flight.arrivedMs = arrivedMs;
      flight.beganMs = flight.spokenMs ?? arrivedMs;
      leg.firstTokenMs = arrivedMs + timings.first_token_ms;
      leg.endMs = arrivedMs + timings.total_ms;
      leg.outcome = "translated";
      flight.firstTokenMs = Math.min(...[...flight.langs.values()].map((one) => one.firstTokenMs ?? Infinity));
      this.#translated(flight, timings, nowMs);
    }
    land(flight);
  }

  get #unended() {
    return [...this.#flights.values()].filter(({ endMs }) => endMs === null);
  }

  /** @param {Pick<Flight, "key" | "source" | "participant" | "speaker">} whose @param {number} nowMs */
  #begin(whose, nowMs) {
    this.giveUp(nowMs);
    for (const [old, { endMs }] of this.#flights) {
      if (nowMs - (endMs ?? nowMs) > KEPT_MS || this.#flights.size >= MOST) this.#flights.delete(old);
    }
    /** @type {Flight} */
    const flight = {
      ...{ ...whose, load: whose.source !== MEETING, lang: "", rev: 0, langs: new Map(), failed: false },
      ...{ beganMs: nowMs, heardMs: nowMs, spokenMs: null, arrivedMs: null, firstTokenMs: null, endMs: null },
    };
    this.#flights.set(whose.key, flight);
    return flight;
  }

  /** @param {(flight: Flight) => boolean} doomed Of those that have not ended. */
  #drop(doomed) {
    for (const flight of this.#unended) if (doomed(flight)) this.#flights.delete(flight.key);
  }

  /** @param {string} name */
  #source(name) {
    const source = this.#sources.get(name) ?? { reads: [], own: "", recovered: false, catchingUp: false };
    this.#sources.set(name, source);
    return source;
  }
}

/** @param {Flight} flight @param {string} lang */
function awaitIn({ langs }, lang) {
  if (!langs.has(lang)) langs.set(lang, { firstTokenMs: null, endMs: null, outcome: "unknown" });
}

/** It ends with its last language, or at once where none is read. @param {Flight} flight */
function land(flight) {
  const ends = [...flight.langs.values()].map(({ endMs }) => endMs);
  if (!ends.includes(null)) flight.endMs = Math.max(flight.arrivedMs ?? -Infinity, ...ends.map(Number));
}
