// The last seconds of the engine as a picture: one bar is one utterance. Knows flights and a canvas; must not know
// clients. It is drawn in the colours of its legend, which the style sheet chooses.

import { element } from "../ui/dom.js";

/** @import {Flights} from "./utterance_tracker.js" */
/** @typedef {"own" | "load" | "bad" | "line" | "ink" | "soft"} Colour */

export const SHOWN_MS = 20_000;
const SILENCE = `Nobody spoke in the last ${SHOWN_MS / 1_000} seconds.`;
const GRID_MS = 5_000;
const AXIS_PX = 18;
const EDGE_PX = 6;
const FADE_PX = 28;
const MOST_BAR_PX = 15;
// As high as lanes are; the style sheet limits how high they are together.
const LANE_PX = 19;
const FEWEST_LANES = 4;
/** Between two bars of one lane. */
const GAP_MS = 250;

export class Timeline {
  element = element("figure", "timeline");
  #canvas = element("canvas", "timeline-canvas");
  #flights;
  /** Kept while a flight is seen, or bars would jump. @type {Map<string, number>} */
  #lanes = new Map();
  /** @type {[Colour, HTMLElement][]} */
  #swatches = [];
  /** @type {Partial<Record<Colour, string>>} */
  #colours = {};
  /** How many lanes there are to be; fewer only when far fewer will do, or what is below would not stand still. */
  #wanted = FEWEST_LANES;
  /** How many lanes there is room for: goes gently to how many there are to be. */
  #room = FEWEST_LANES;
  #dirty = true;

  /** @param {Flights} flights */
  constructor(flights) {
    this.#flights = flights;
    this.#canvas.setAttribute("role", "img");
    this.#canvas.dataset.testid = "timeline";
    const legend = element("figcaption", "timeline-legend hint");
    const named = { own: "this meeting", load: "simulated", bad: "failed", line: "", ink: "", soft: "" };
    for (const [colour, words] of Object.entries(named)) {
      const swatch = element("i", `swatch swatch-${colour}`);
      this.#swatches.push([/** @type {Colour} */ (colour), swatch]);
      const key = element("span", "timeline-key");
      key.append(swatch, words);
      key.hidden = !words;
      legend.append(key);
    }
    this.element.append(this.#canvas, legend);
    const again = () => {
      this.#colours = {};
      this.#dirty = true;
    };
    new ResizeObserver(again).observe(this.#canvas);
    for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
      matchMedia(query).addEventListener("change", again);
    }
    new MutationObserver(again).observe(document.documentElement, { attributes: true });
  }

  /** @param {number} nowMs */
  isMoving(nowMs) {
    if (this.#dirty || this.#lanes.size > 0 || this.#room !== this.#wanted) return true;
    return this.#flights.visible(nowMs - SHOWN_MS, nowMs).length > 0;
  }

  /** @param {string} words For those who do not see it. */
  set description(words) {
    this.#canvas.setAttribute("aria-label", words);
  }

  /**
   * @param {number} nowMs
   * @param {boolean} calm Whether nothing is to glide.
   */
  draw(nowMs, calm) {
    const context = this.#canvas.getContext("2d");
    if (this.#canvas.clientWidth === 0 || context === null) return;
    this.#dirty = false;
    const flights = this.#flights.visible(nowMs - SHOWN_MS, nowMs);
    const lanes = Math.max(FEWEST_LANES, this.#assign(flights));
    if (lanes > this.#wanted || lanes <= this.#wanted / 2) this.#wanted = lanes;
    const away = this.#wanted - this.#room;
    this.#room += calm || Math.abs(away) < 0.05 ? away : away * 0.12;
    this.#canvas.style.setProperty("height", `${Math.round(this.#room * LANE_PX + AXIS_PX)}px`);
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    this.#fit(context, width, height);

    const right = width - EDGE_PX;
    const bottom = height - AXIS_PX;
    const x = (/** @type {number} */ atMs) => right - ((nowMs - atMs) * right) / SHOWN_MS;
    const lanePx = bottom / this.#room;
    const barPx = Math.min(MOST_BAR_PX, lanePx - Math.min(4, lanePx * 0.3));
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
      context.fillText(backMs > 0 ? `−${backMs / 1_000} s` : "now", backMs > 0 ? at : width, height - 5);
    }
    fill("line", 0, bottom, width, 1);

    if (flights.length === 0) {
      context.clearRect(EDGE_PX, bottom / 2 - 10, right - 2 * EDGE_PX, 20);
      context.fillStyle = this.#colours.soft ?? "gray";
      context.textAlign = "center";
      context.fillText(SILENCE, width / 2, bottom / 2 + 4);
    }
    context.textAlign = "left";
    for (const flight of flights) {
      const hue = flight.load ? "load" : "own";
      const top = ((this.#lanes.get(flight.key) ?? 0) + 0.5) * lanePx - barPx / 2;
      const begin = x(flight.beganMs);
      const arrived = flight.arrivedMs === null ? Infinity : x(flight.arrivedMs);
      // What takes no time is to be seen, too.
      const end = Math.max(x(flight.endMs ?? nowMs), begin + 2, arrived < right ? arrived + 3 : 0);
      context.save();
      context.beginPath();
      context.roundRect(begin, top, end - begin, barPx, Math.min(4, barPx / 2));
      context.clip();
      context.globalAlpha = 0.28;
      fill(hue, begin, top, end - begin, barPx);
      context.globalAlpha = 1;
      if (barPx >= 11) {
        context.fillStyle = this.#colours.ink ?? "gray";
        const pair = [flight.lang, [...flight.langs.keys()].join(", ")].filter(Boolean).join(" → ");
        const words = flight.load ? pair : flight.speaker || pair;
        const choice = [words, words.split(" ")[0] ?? ""];
        const fits = choice.find((some) => context.measureText(some).width < end - begin - 8) ?? "";
        context.fillText(fits, begin + 5, top + barPx / 2 + 4);
      }
      if (arrived < end) fill(flight.failed ? "bad" : hue, arrived, top, end - arrived, barPx);
      context.restore();
      if (flight.firstTokenMs !== null) fill("ink", x(flight.firstTokenMs) - 0.75, top - 1, 1.5, barPx + 2);
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
   * As many pixels as the screen has there, empty.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  #fit(context, width, height) {
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
   * Each flight into the first lane that is free when it begins.
   * @param {ReturnType<Flights["visible"]>} flights In the order in which they began.
   * @returns {number} How many lanes there are.
   */
  #assign(flights) {
    const lanes = new Map();
    /** @type {number[]} Until when each lane is taken. */
    const taken = [];
    for (const { key, beganMs, endMs } of flights) {
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
