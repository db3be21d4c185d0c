// The panel that shows the engine at work: its latency, what it translates now, and buttons for simulated speakers.
// Must not know the meeting.

import { MAX_SPEAKERS } from "../samples/simulated_speakers.js";
import { element, setIfChanged } from "../ui/dom.js";
import { pageLanguage, t } from "../words/words.js";
import { LaneList } from "./lane_list.js";
import { Sparkline } from "./sparkline.js";
import { SHOWN_MS, Timeline } from "./timeline.js";

/** @import {SimulatedSpeakers} from "../samples/simulated_speakers.js" */
/** @import {Latency, Measure} from "./latency.js" */
/** @import {UtteranceTracker} from "./utterance_tracker.js" */

// How often each part of the panel is brought up to date.
const NUMBERS_MS = 200;
const FRAME_MS = 1_000 / 30;
const REDUCED_MOTION_MS = 1_000;
const SPARKLINE_MS = 1_000;
const DESCRIPTION_MS = 5_000;
const LANES_MS = 2_000;
const SLICES = 30;
const SPEAKERS_TO_ADD = [5, 20];

/** @param {number | null} ms */
function formatMs(ms) {
  if (ms === null) return "–";
  return ms < 9_999.5 ? `${Math.round(ms).toLocaleString(pageLanguage())} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

/**
 * @param {HTMLElement} target
 * @param {string} text
 */
function setText(target, text) {
  setIfChanged(target, "textContent", text);
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {[className: string, testid: string, text?: string]} names
 */
function testable(tag, ...[className, testid, text]) {
  const made = element(tag, className, text);
  made.dataset.testid = testid;
  return made;
}

/**
 * @param {string} className
 * @param {(string | Node)[]} parts
 */
function box(className, ...parts) {
  const made = element("div", className);
  made.append(...parts);
  return made;
}

/**
 * A number with its name.
 * @param {string} name
 * @param {HTMLElement} value
 */
const pair = (name, value) => box("pair", element("dt", "", name), value);

/** The percentiles of one measure, and its last minute as a line. */
class Gauge {
  #sparkline = new Sparkline();
  #p50;
  #p99;
  #measure;

  /**
   * @param {string} name
   * @param {Measure} measure
   * @param {string} testid
   */
  constructor(name, measure, testid) {
    this.#measure = measure;
    this.#p50 = testable("dd", "gauge-p50", `${testid}-p50`);
    this.#p99 = testable("dd", "", `${testid}-p99`);
    const numbers = element("dl", "gauge-numbers");
    numbers.append(pair("p50", this.#p50), pair("p99", this.#p99));
    this.element = box("gauge", element("h3", "", name), numbers, this.#sparkline.element);
  }

  /**
   * @param {Latency} latency
   * @param {number} nowMs
   * @param {boolean} redraw Whether the line is drawn, too.
   */
  show(latency, nowMs, redraw) {
    const { p50, p99 } = latency.summary(this.#measure, nowMs);
    setText(this.#p50, formatMs(p50));
    setText(this.#p99, formatMs(p99));
    if (redraw) this.#sparkline.draw(latency.series(this.#measure, nowMs, SLICES));
  }
}

export class EnginePanel {
  element = element("section", "engine");
  lanes = new LaneList();
  #parts;
  #timeline;
  #gauges = [
    new Gauge(t("engine.first_token"), "first_token_ms", "first-token"),
    new Gauge(t("engine.whole"), "total_ms", "total"),
  ];
  #connection = testable("p", "engine-connection", "engine-connection");
  #speaking = testable("dd", "", "speaking");
  #inFlight = testable("dd", "", "in-flight");
  #languages = testable("ul", "chips", "languages-running");
  /** The languages shown, and when each was last translated into. @type {Map<string, {chip: HTMLElement, atMs: number}>} */
  #chips = new Map();
  #count = testable("p", "engine-count", "load-count");
  #problem = testable("p", "engine-problem", "load-problem");
  #addButtons = SPEAKERS_TO_ADD.map((count, index) =>
    testable("button", "secondary", `load-add-${count}`, t(index === 0 ? "engine.add" : "engine.add_more", { count })),
  );
  #load;
  #stop = testable("button", "secondary", "load-stop", t("engine.stop"));
  #reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  #isVisible = false;
  #isTicking = false;
  /** When each part was last brought up to date. */
  #updatedMs = {
    numbers: -Infinity,
    timeline: -Infinity,
    sparklines: -Infinity,
    description: -Infinity,
    lanes: -Infinity,
  };

  /**
   * @param {object} parts
   * @param {UtteranceTracker} parts.tracker
   * @param {Latency} parts.latency
   * @param {SimulatedSpeakers} parts.speakers
   * @param {(tag: string) => string} parts.nameOf A language's name.
   * @param {() => boolean} [parts.maySimulate] Whether simulated speakers are offered now.
   * @param {() => void} [parts.onLook] Called now and then while several engines are looked at.
   */
  constructor(parts) {
    this.#parts = parts;
    this.#timeline = new Timeline(parts.tracker);
    this.element.setAttribute("aria-label", t("tab.engine"));
    this.#languages.setAttribute("aria-label", t("engine.translating"));
    this.#count.setAttribute("role", "status");
    this.#problem.setAttribute("role", "status");
    const counts = element("dl", "engine-counts");
    counts.append(pair(t("engine.saying"), this.#speaking), pair(t("engine.in_flight"), this.#inFlight));
    this.#load = box("engine-load", this.#count, box("engine-buttons", ...this.#addButtons, this.#stop), this.#problem);
    this.element.append(
      this.#connection,
      this.lanes.element,
      box("gauges", ...this.#gauges.map((gauge) => gauge.element)),
      box("engine-now", counts, this.#languages),
      this.#timeline.element,
      element("p", "hint", t("engine.explanation")),
      this.#load,
    );
    /** @type {(button: HTMLElement, action: () => void) => void} */
    const onClick = (button, action) => {
      button.setAttribute("type", "button");
      button.addEventListener("click", () => {
        action();
        this.render();
      });
    };
    this.#addButtons.forEach((add, index) => onClick(add, () => parts.speakers.add(SPEAKERS_TO_ADD[index] ?? 0)));
    onClick(this.#stop, () => parts.speakers.stop());
    new IntersectionObserver((entries) => {
      this.#isVisible = entries.at(-1)?.isIntersecting ?? false;
      this.#wake();
    }).observe(this.element);
    document.addEventListener("visibilitychange", () => this.#wake());
  }

  /** @param {{state: import("../status/status_label.js").Severity, words: string}} connection */
  set connection({ state, words }) {
    this.#connection.dataset.state = state;
    setText(this.#connection, words);
  }

  /** Who simulates speakers can stop them. */
  #showLoad() {
    const { maySimulate, speakers } = this.#parts;
    setIfChanged(this.#load, "hidden", maySimulate?.() === false && speakers.count === 0);
  }

  /** Show the current numbers. The panel does this by itself while it is visible. */
  render() {
    const { tracker, latency, speakers } = this.#parts;
    const nowMs = performance.now();
    tracker.endSilent(nowMs);
    const redraw = this.#due("sparklines", SPARKLINE_MS, nowMs);
    for (const gauge of this.#gauges) gauge.show(latency, nowMs, redraw);
    setText(this.#inFlight, String(tracker.inFlight));
    setText(this.#speaking, String(tracker.speaking));
    this.#showLanguages(nowMs);
    this.#showLoad();
    setText(this.#count, speakers.count ? t("engine.speakers", { count: speakers.count }) : t("engine.no_speakers"));
    setText(this.#problem, speakers.problem);
    // Not `disabled`: a disabled button loses the focus.
    this.#stop.ariaDisabled = String(speakers.count === 0);
    for (const add of this.#addButtons) add.ariaDisabled = String(speakers.count >= MAX_SPEAKERS);
    if (this.#due("description", DESCRIPTION_MS, nowMs)) {
      const shown = tracker.visible(nowMs - SHOWN_MS, nowMs).length;
      const now = { shown, speaking: tracker.speaking, running: tracker.inFlight };
      this.#timeline.description = t("engine.timeline", { seconds: SHOWN_MS / 1_000, ...now });
    }
  }

  /** A language stays for a while after it was used, so that the content below does not jump. @param {number} nowMs */
  #showLanguages(nowMs) {
    const running = this.#parts.tracker.languagesRunning;
    for (const lang of running) {
      if (!this.#chips.has(lang)) {
        const chip = element("li", "chip", this.#parts.nameOf(lang));
        this.#chips.set(lang, { chip, atMs: nowMs });
        this.#languages.append(chip);
      }
    }
    for (const [lang, shown] of this.#chips) {
      if (shown.chip.toggleAttribute("data-running", running.has(lang))) shown.atMs = nowMs;
      if (nowMs - shown.atMs < SHOWN_MS) continue;
      shown.chip.remove();
      this.#chips.delete(lang);
    }
  }

  #wake() {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#tick();
  }

  #tick() {
    this.#isTicking = this.#isVisible && document.visibilityState === "visible";
    if (!this.#isTicking) return;
    const nowMs = performance.now();
    if (this.#due("numbers", NUMBERS_MS, nowMs)) this.render();
    if (!this.lanes.element.hidden && this.#due("lanes", LANES_MS, nowMs)) this.#parts.onLook?.();
    const isReduced = this.#reducedMotion.matches;
    const isMoving = this.#timeline.isMoving(nowMs);
    // Frames do not come exactly on time: one that is up to 4 ms early is drawn.
    const intervalMs = (isReduced ? REDUCED_MOTION_MS : FRAME_MS) - 4;
    if (isMoving && this.#due("timeline", intervalMs, nowMs)) this.#timeline.draw(nowMs, isReduced);
    if (isMoving && !isReduced) requestAnimationFrame(() => this.#tick());
    else setTimeout(() => this.#tick(), NUMBERS_MS);
  }

  /**
   * Whether it is time to bring a part up to date again.
   * @param {"numbers" | "timeline" | "sparklines" | "description" | "lanes"} part
   * @param {number} intervalMs
   * @param {number} nowMs
   */
  #due(part, intervalMs, nowMs) {
    const isDue = nowMs - this.#updatedMs[part] >= intervalMs;
    if (isDue) this.#updatedMs[part] = nowMs;
    return isDue;
  }
}
