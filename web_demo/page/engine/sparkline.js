// Draws one measure over the last minute: medians as a line, maxima as an area.

const WIDTH = 100;
const HEIGHT = 32;

/**
 * @param {"svg" | "path"} tag
 * @param {Record<string, string>} attributes
 */
function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export class Sparkline {
  element = svg("svg", { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  #area = svg("path", { class: "sparkline-shade" });
  #line = svg("path", { class: "sparkline-line" });

  constructor() {
    this.element.setAttribute("preserveAspectRatio", "none");
    this.element.append(this.#area, this.#line);
  }

  /** @param {readonly ({p50: number, max: number} | null)[]} series Oldest first. */
  draw(series) {
    const top = Math.max(1, ...series.map((slice) => slice?.max ?? 0));
    const points = series.flatMap((slice, index) =>
      slice ? [{ x: Math.round((index * WIDTH) / (series.length - 1)), ...slice }] : [],
    );
    const path = (/** @type {"p50" | "max"} */ measure) =>
      points.map((point) => `${point.x} ${(HEIGHT - 2 - (point[measure] / top) * (HEIGHT - 5)).toFixed(1)}`).join("L");
    // A very short line with round ends makes a single point visible as a dot.
    this.#line.setAttribute("d", points.length > 0 ? `M${path("p50")}h.01` : "");
    const [first, last] = [points[0]?.x, points.at(-1)?.x];
    this.#area.setAttribute("d", points.length > 1 ? `M${path("max")}L${last} ${HEIGHT}H${first}Z` : "");
  }
}
