// The engine at work: how fast it is, what it does now, and load to see it under. Knows flights, latencies and
// elements; must not know the meeting.

import { element } from "../ui/dom.js";
import { MOST_SPEAKERS } from "../samples/simulated_speakers.js";
import { Sparkline } from "./sparkline.js";
import { SHOWN_MS, Timeline } from "./timeline.js";

/** @import {Flights} from "./utterance_tracker.js" */
/** @import {Latency, Measure} from "./latency.js" */
/** @import {LoadSpeakers} from "../samples/simulated_speakers.js" */

const NUMBERS_MS = 200;
const FRAME_MS = 1_000 / 30;
const CALM_MS = 1_000;
const SPARK_MS = 1_000;
const SLICES = 30;
const DESCRIBE_MS = 5_000;
const MORE = [5, 20];
const EXPLANATION =
  "One bar is one utterance: light while it is being said, darker while it waits and is translated, the tick is its " +
  "first token. Bars that begin while others run joined the running batch.";

/** @param {number | null} ms */
function inWords(ms) {
  if (ms === null) return "–";
  return ms < 9_999.5 ? `${Math.round(ms).toLocaleString("en")} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/** @param {HTMLElement} where @param {string} words */
function put(where, words) {
  if (where.textContent !== words) where.textContent = words;
}

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {[string, string, string?]} names */
function marked(tag, ...[className, testid, text]) {
  const made = element(tag, className, text);
  made.dataset.testid = testid;
  return made;
}

/** @param {string} className @param {(string | Node)[]} parts */
function box(className, ...parts) {
  const made = element("div", className);
  made.append(...parts);
  return made;
}

/** A number with its name. @param {string} name @param {HTMLElement} value */
const pair = (name, value) => box("pair", element("dt", "", name), value);

/** One measure: its percentiles, and its last minute. */
class Gauge {
  #sparkline = new Sparkline();
  #p50;
  #p99;
  #measure;

  /** @param {string} name @param {Measure} measure @param {string} testid */
  constructor(name, measure, testid) {
    this.#measure = measure;
    this.#p50 = marked("dd", "gauge-p50", `${testid}-p50`);
    this.#p99 = marked("dd", "", `${testid}-p99`);
    const numbers = element("dl", "gauge-numbers");
    numbers.append(pair("p50", this.#p50), pair("p99", this.#p99));
    this.element = box("gauge", element("h3", "", name), numbers, this.#sparkline.element);
  }

  /** @param {Latency} latency @param {number} nowMs @param {boolean} redraw */
  show(latency, nowMs, redraw) {
    const { p50, p99 } = latency.summary(this.#measure, nowMs);
    put(this.#p50, inWords(p50));
    put(this.#p99, inWords(p99));
    if (redraw) this.#sparkline.draw(latency.series(this.#measure, nowMs, SLICES));
  }
}

export class EnginePanel {
  element = element("section", "engine");
  #parts;
  #timeline;
  #gauges = [
    new Gauge("First token", "first_token_ms", "first-token"),
    new Gauge("Whole text", "total_ms", "total"),
  ];
  #connection = marked("p", "engine-connection", "engine-connection");
  #speaking = marked("dd", "", "speaking");
  #inFlight = marked("dd", "", "in-flight");
  #languages = marked("ul", "chips", "languages-running");
  /** @type {Map<string, {chip: HTMLElement, atMs: number}>} Languages, and when each was last translated into. */
  #seen = new Map();
  #count = marked("p", "engine-count", "load-count");
  #problem = marked("p", "engine-problem", "load-problem");
  #more = MORE.map((more) => marked("button", "secondary", `load-add-${more}`, `Add ${more}`));
  #stop = marked("button", "secondary", "load-stop", "Stop");
  #calm = matchMedia("(prefers-reduced-motion: reduce)");
  #shown = false;
  #running = false;
  /** When each was done last. */
  #doneMs = { numbers: -Infinity, timeline: -Infinity, sparklines: -Infinity, description: -Infinity };

  /**
   * @param {{flights: Flights, latency: Latency, load: LoadSpeakers, nameOf: (tag: string) => string}} parts `nameOf`:
   *   a language's name.
   */
  constructor(parts) {
    this.#parts = parts;
    this.#timeline = new Timeline(parts.flights);
    this.element.setAttribute("aria-label", "Engine");
    this.#languages.setAttribute("aria-label", "Being translated into");
    this.#count.setAttribute("role", "status");
    this.#problem.setAttribute("role", "status");
    this.#more[0]?.append(" speakers");
    const counts = element("dl", "engine-counts");
    counts.append(pair("being said", this.#speaking), pair("in flight", this.#inFlight));
    this.element.append(
      this.#connection,
      box("gauges", ...this.#gauges.map((gauge) => gauge.element)),
      box("engine-now", counts, this.#languages),
      this.#timeline.element,
      element("p", "hint", EXPLANATION),
      box("engine-load", this.#count, box("engine-buttons", ...this.#more, this.#stop), this.#problem),
    );
    /** @param {HTMLElement} button @param {() => void} act */
    const on = (button, act) => {
      button.setAttribute("type", "button");
      button.addEventListener("click", () => {
        act();
        this.render();
      });
    };
    this.#more.forEach((button, index) => on(button, () => parts.load.add(MORE[index] ?? 0)));
    on(this.#stop, () => parts.load.stop());
    new IntersectionObserver((entries) => {
      this.#shown = entries.at(-1)?.isIntersecting ?? false;
      this.#wake();
    }).observe(this.element);
    document.addEventListener("visibilitychange", () => this.#wake());
  }

  /** @param {{state: "good" | "busy" | "bad", words: string}} connected */
  set connection({ state, words }) {
    this.#connection.dataset.state = state;
    put(this.#connection, words);
  }

  /** Show the numbers of now; it is called by itself while the panel is seen. */
  render() {
    const { flights, latency, load } = this.#parts;
    const nowMs = performance.now();
    flights.giveUp(nowMs);
    const due = this.#due("sparklines", SPARK_MS, nowMs);
    for (const gauge of this.#gauges) gauge.show(latency, nowMs, due);
    put(this.#inFlight, String(flights.inFlight));
    put(this.#speaking, String(flights.speaking));
    this.#showLanguages(nowMs);
    put(this.#count, `${load.count || "No"} simulated speaker${load.count === 1 ? "" : "s"}`);
    put(this.#problem, load.problem);
    // Not `disabled`, which would take the focus from whoever pressed it.
    this.#stop.ariaDisabled = String(load.count === 0);
    for (const button of this.#more) button.ariaDisabled = String(load.count >= MOST_SPEAKERS);
    if (this.#due("description", DESCRIBE_MS, nowMs)) {
      const shown = flights.visible(nowMs - SHOWN_MS, nowMs).length;
      const now = `${shown} utterances, ${flights.speaking} being said, ${flights.inFlight} in flight`;
      this.#timeline.description = `Timeline of the last ${SHOWN_MS / 1_000} seconds: ${now}.`;
    }
  }

  /** A language stays for a while when it rests, or what is below would jump. @param {number} nowMs */
  #showLanguages(nowMs) {
    const running = this.#parts.flights.languagesRunning;
    for (const lang of running) {
      if (!this.#seen.has(lang)) {
        const chip = element("li", "chip", this.#parts.nameOf(lang));
        this.#seen.set(lang, { chip, atMs: nowMs });
        this.#languages.append(chip);
      }
    }
    for (const [lang, seen] of this.#seen) {
      if (seen.chip.toggleAttribute("data-running", running.has(lang))) seen.atMs = nowMs;
      if (nowMs - seen.atMs < SHOWN_MS) continue;
      seen.chip.remove();
      this.#seen.delete(lang);
    }
  }

  #wake() {
    if (this.#running) return;
    this.#running = true;
    this.#tick();
  }

  #tick() {
    this.#running = this.#shown && document.visibilityState === "visible";
    if (!this.#running) return;
    const nowMs = performance.now();
    if (this.#due("numbers", NUMBERS_MS, nowMs)) this.render();
    const calm = this.#calm.matches;
    const moving = this.#timeline.isMoving(nowMs);
    // A frame that comes a little early is the one.
    if (moving && this.#due("timeline", (calm ? CALM_MS : FRAME_MS) - 4, nowMs)) this.#timeline.draw(nowMs, calm);
    if (moving && !calm) requestAnimationFrame(() => this.#tick());
    else setTimeout(() => this.#tick(), NUMBERS_MS);
  }

  /**
   * Whether something is to be done again.
   * @param {"numbers" | "timeline" | "sparklines" | "description"} what
   * @param {number} everyMs
   * @param {number} nowMs
   */
  #due(what, everyMs, nowMs) {
    const due = nowMs - this.#doneMs[what] >= everyMs;
    if (due) this.#doneMs[what] = nowMs;
    return due;
  }
}
