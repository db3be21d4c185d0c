// A minute of one measure: its medians as a line, its longest as a shade. Knows numbers and how to draw them.

const WIDTH = 100;
const HEIGHT = 32;

/** @param {"svg" | "path"} kind @param {Record<string, string>} attributes */
function svg(kind, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

export class Sparkline {
  element = svg("svg", { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" });
  #shade = svg("path", { class: "sparkline-shade" });
  #line = svg("path", { class: "sparkline-line" });

  constructor() {
    this.element.setAttribute("preserveAspectRatio", "none");
    this.element.append(this.#shade, this.#line);
  }

  /** @param {readonly ({p50: number, most: number} | null)[]} series Oldest first. */
  draw(series) {
    const top = Math.max(1, ...series.map((slice) => slice?.most ?? 0));
    const points = series.flatMap((slice, index) =>
      slice ? [{ x: Math.round((index * WIDTH) / (series.length - 1)), ...slice }] : [],
    );
    const path = (/** @type {"p50" | "most"} */ what) =>
      points.map((point) => `${point.x} ${(HEIGHT - 2 - (point[what] / top) * (HEIGHT - 5)).toFixed(1)}`).join("L");
    // One point alone is a dot: a line to nowhere with round ends.
    this.#line.setAttribute("d", points.length > 0 ? `M${path("p50")}h.01` : "");
    const [first, last] = [points[0]?.x, points.at(-1)?.x];
    this.#shade.setAttribute("d", points.length > 1 ? `M${path("most")}L${last} ${HEIGHT}H${first}Z` : "");
  }
}
