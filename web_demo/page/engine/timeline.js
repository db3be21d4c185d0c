// The last seconds of the engine as a chart: one bar is one utterance. Must not know clients. The style sheet chooses the
// colours: the chart takes them from its legend.

import { element } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @import {TrackedUtterance, UtteranceTracker} from "./utterance_tracker.js" */
/** @typedef {"own" | "load" | "bad" | "line" | "ink" | "soft"} Colour */

export const SHOWN_MS = 20_000;
const EMPTY = t("engine.silence", { seconds: SHOWN_MS / 1_000 });
const GRID_MS = 5_000;
const AXIS_PX = 18;
const EDGE_PX = 6;
const FADE_PX = 28;
const MAX_BAR_PX = 15;
// The height of a lane. The style sheet limits the height of the chart.
const LANE_PX = 19;
const MIN_LANES = 4;
// The shortest time between two bars in one lane.
const GAP_MS = 250;

export class Timeline {
  element = element("figure", "timeline");
  #canvas = element("canvas", "timeline-canvas");
  #tracker;
  /** Utterance → lane. It stays while its bar is visible, so that bars do not jump. @type {Map<string, number>} */
  #lanes = new Map();
  /** @type {[Colour, HTMLElement][]} */
  #swatches = [];
  /** @type {Partial<Record<Colour, string>>} */
  #colours = {};
  /** How many lanes to show. It shrinks only if far fewer are needed, so that the content below does not move often. */
  #laneCount = MIN_LANES;
  /** The height in lanes while it changes gradually to `#laneCount`. */
  #animatedLanes = MIN_LANES;
  #needsDrawing = true;

  /** @param {UtteranceTracker} tracker */
  constructor(tracker) {
    this.#tracker = tracker;
    this.#canvas.setAttribute("role", "img");
    this.#canvas.dataset.testid = "timeline";
    const legend = element("figcaption", "timeline-legend hint");
    const labels = { own: t("engine.own"), load: t("engine.load"), bad: t("engine.bad"), line: "", ink: "", soft: "" };
    for (const [colour, label] of Object.entries(labels)) {
      const swatch = element("i", `swatch swatch-${colour}`);
      this.#swatches.push([/** @type {Colour} */ (colour), swatch]);
      const key = element("span", "timeline-key");
      key.append(swatch, label);
      key.hidden = !label;
      legend.append(key);
    }
    this.element.append(this.#canvas, legend);
    const redraw = () => {
      this.#colours = {};
      this.#needsDrawing = true;
    };
    new ResizeObserver(redraw).observe(this.#canvas);
    for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
      matchMedia(query).addEventListener("change", redraw);
    }
    new MutationObserver(redraw).observe(document.documentElement, { attributes: true });
  }

  /** @param {number} nowMs */
  isMoving(nowMs) {
    if (this.#needsDrawing || this.#lanes.size > 0 || this.#animatedLanes !== this.#laneCount) return true;
    return this.#tracker.visible(nowMs - SHOWN_MS, nowMs).length > 0;
  }

  /** @param {string} text For screen readers. */
  set description(text) {
    this.#canvas.setAttribute("aria-label", text);
  }

  /**
   * @param {number} nowMs
   * @param {boolean} reducedMotion
   */
  draw(nowMs, reducedMotion) {
    const context = this.#canvas.getContext("2d");
    if (this.#canvas.clientWidth === 0 || context === null) return;
    this.#needsDrawing = false;
    const utterances = this.#tracker.visible(nowMs - SHOWN_MS, nowMs);
    const lanes = Math.max(MIN_LANES, this.#assignLanes(utterances));
    if (lanes > this.#laneCount || lanes <= this.#laneCount / 2) this.#laneCount = lanes;
    const change = this.#laneCount - this.#animatedLanes;
    this.#animatedLanes += reducedMotion || Math.abs(change) < 0.05 ? change : change * 0.12;
    this.#canvas.style.setProperty("height", `${Math.round(this.#animatedLanes * LANE_PX + AXIS_PX)}px`);
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    this.#prepare(context, width, height);

    const right = width - EDGE_PX;
    const bottom = height - AXIS_PX;
    const x = (/** @type {number} */ atMs) => right - ((nowMs - atMs) * right) / SHOWN_MS;
    const lanePx = bottom / this.#animatedLanes;
    const barPx = Math.min(MAX_BAR_PX, lanePx - Math.min(4, lanePx * 0.3));
    /** @type {(colour: Colour, left: number, top: number, wide: number, high: number) => void} */
    const fill = (colour, left, top, wide, high) => {
      context.fillStyle = this.#colours[colour] ?? "gray";
      context.fillRect(left, top, wide, high);
    };

    for (let backMs = 0; backMs < SHOWN_MS; backMs += GRID_MS) {
      const at = Math.round(x(nowMs - backMs));
      if (backMs > 0) fill("line", at, 0, 1, bottom);
      context.fillStyle = this.#colours.soft ?? "gray";
      context.textAlign = backMs > 0 ? "center" : "right";
      context.fillText(backMs > 0 ? `−${backMs / 1_000} s` : t("engine.now"), backMs > 0 ? at : width, height - 5);
    }
    fill("line", 0, bottom, width, 1);

    if (utterances.length === 0) {
      context.clearRect(EDGE_PX, bottom / 2 - 10, right - 2 * EDGE_PX, 20);
      context.fillStyle = this.#colours.soft ?? "gray";
      context.textAlign = "center";
      context.fillText(EMPTY, width / 2, bottom / 2 + 4);
    }
    context.textAlign = "left";
    for (const utterance of utterances) {
      const colour = utterance.isSimulated ? "load" : "own";
      const top = ((this.#lanes.get(utterance.key) ?? 0) + 0.5) * lanePx - barPx / 2;
      const begin = x(utterance.beganMs);
      const accepted = utterance.acceptedMs === null ? Infinity : x(utterance.acceptedMs);
      // A bar that takes no time is visible, too.
      const end = Math.max(x(utterance.endMs ?? nowMs), begin + 2, accepted < right ? accepted + 3 : 0);
      context.save();
      context.beginPath();
      context.roundRect(begin, top, end - begin, barPx, Math.min(4, barPx / 2));
      context.clip();
      context.globalAlpha = 0.28;
      fill(colour, begin, top, end - begin, barPx);
      context.globalAlpha = 1;
      if (barPx >= 11) {
        context.fillStyle = this.#colours.ink ?? "gray";
        const pair = [utterance.lang, [...utterance.langs.keys()].join(", ")].filter(Boolean).join(" → ");
        const text = utterance.isSimulated ? pair : utterance.speaker || pair;
        const labels = [text, text.split(" ")[0] ?? ""];
        const label = labels.find((one) => context.measureText(one).width < end - begin - 8) ?? "";
        context.fillText(label, begin + 5, top + barPx / 2 + 4);
      }
      if (accepted < end) fill(utterance.failed ? "bad" : colour, accepted, top, end - accepted, barPx);
      context.restore();
      if (utterance.firstTokenMs !== null) fill("ink", x(utterance.firstTokenMs) - 0.75, top - 1, 1.5, barPx + 2);
    }

    const fade = context.createLinearGradient(0, 0, FADE_PX, 0);
    fade.addColorStop(0, "#000");
    fade.addColorStop(1, "#0000");
    context.globalCompositeOperation = "destination-out";
    context.fillStyle = fade;
    context.fillRect(0, 0, FADE_PX, bottom);
    context.globalCompositeOperation = "source-over";
    fill("own", right, 0, 1.5, bottom);
  }

  /**
   * Clear the canvas, and fit it to the pixels of the screen.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #prepare(context, width, height) {
    const ratio = window.devicePixelRatio;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.#canvas.width !== wide || this.#canvas.height !== high) {
      this.#canvas.width = wide;
      this.#canvas.height = high;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    if (this.#colours.ink) return;
    context.font = `11px ${getComputedStyle(this.#canvas).fontFamily}`;
    for (const [name, swatch] of this.#swatches) this.#colours[name] = getComputedStyle(swatch).backgroundColor;
  }

  /**
   * Put each utterance into the first lane that is free when it begins.
   * @param {readonly TrackedUtterance[]} utterances In the order in which they began.
   * @returns {number} How many lanes are needed.
   */
  #assignLanes(utterances) {
    const lanes = new Map();
    /** Until when each lane is taken. @type {number[]} */
    const taken = [];
    for (const { key, beganMs, endMs } of utterances) {
      const free = taken.findIndex((untilMs) => untilMs + GAP_MS < beganMs);
      const lane = this.#lanes.get(key) ?? (free < 0 ? taken.length : free);
      lanes.set(key, lane);
      while (taken.length <= lane) taken.push(-Infinity);
      taken[lane] = endMs ?? Infinity;
    }
    this.#lanes = lanes;
    return taken.length;
  }
}
