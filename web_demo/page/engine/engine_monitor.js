// Shows the engine at work in a meeting, with simulated speakers on demand. Connects the panel with what it shows; must
// not know the meeting page.

import { SimulatedSpeakers } from "../samples/simulated_speakers.js";
import { EnginePanel } from "./engine_panel.js";
import { Latency } from "./latency.js";
import { OWN_MEETING, UtteranceTracker } from "./utterance_tracker.js";

/** @import {ClientEvent} from "../../client/events.js" */
/** @import {Readiness} from "../status/readiness_poller.js" */
/** @import {Language} from "../ui/languages.js" */

export class EngineMonitor {
  #tracker;
  #speakers;
  #panel;

  /**
   * @param {object} options
   * @param {string} options.streamUrl
   * @param {readonly Language[]} options.languages
   * @param {(tag: string) => string} options.nameOf
   * @param {() => boolean} options.maySimulate Whether simulated speakers are offered now.
   * @param {() => void} options.onLook Called now and then while several engines are looked at: they are to be shown.
   */
  constructor({ streamUrl, languages, nameOf, maySimulate, onLook }) {
    const latency = new Latency();
    this.#tracker = new UtteranceTracker((timings, nowMs) => latency.add(timings, nowMs));
    this.#speakers = new SimulatedSpeakers({
      streamUrl,
      languages,
      onEvent: (speaker, event) => this.#tracker.onEvent(speaker, event, performance.now()),
    });
    const [tracker, speakers] = [this.#tracker, this.#speakers];
    this.#panel = new EnginePanel({ tracker, latency, speakers, nameOf, maySimulate, onLook });
  }

  get element() {
    return this.#panel.element;
  }

  /** @param {{state: import("../status/status_label.js").Severity, words: string}} connection */
  set connection(connection) {
    this.#panel.connection = connection;
  }

  /** @param {Readiness} readiness */
  set readiness({ engines = [], waiting = 0 }) {
    this.#panel.lanes.show(engines, waiting);
  }

  /** The languages that simulated speakers may use. @param {readonly Language[]} languages */
  set languages(languages) {
    this.#speakers.languages = languages;
  }

  /**
   * @param {ClientEvent} event From the client in the page's meeting.
   * @param {readonly string[]} reads What this client reads.
   */
  onEvent(event, reads) {
    if (event.type === "session.started") this.#tracker.setReads(OWN_MEETING, reads);
    this.#tracker.onEvent(OWN_MEETING, event, performance.now());
  }

  /** The simulated speakers. */
  get speakers() {
    return this.#speakers;
  }
}
