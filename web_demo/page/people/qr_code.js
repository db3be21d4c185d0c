// A link as a QR code. Knows the gateway's address of codes; must not know what the link leads to.

const SVG = "http://www.w3.org/2000/svg";

export class QrCode {
  element = document.createElementNS(SVG, "svg");
  /** What is shown, or asked for. */
  #link = "";

  /** @param {string} name */
  constructor(name) {
    this.element.setAttribute("class", "dialog-qr");
    this.element.setAttribute("shape-rendering", "crispEdges");
    this.element.role = "img";
    this.element.ariaLabel = name;
    this.element.toggleAttribute("hidden", true);
  }

  /** Show the code of a link; nothing if the gateway does not draw it. @param {string} link */
  async show(link) {
    if (link === this.#link) return;
    this.#link = link;
    this.element.toggleAttribute("hidden", true);
    try {
      // Not as the address of an image: it would get into logs, and an invite with it.
      const response = await fetch("./qr.svg", { method: "POST", body: link, cache: "no-store" });
      if (response.ok && link === this.#link) this.#draw(await response.text());
      if (!response.ok) this.#link = "";
    } catch {
      this.#link = "";
    }
  }

  /** The policy of the page lets no text become elements. @param {string} drawing */
  #draw(drawing) {
    const viewBox = /viewBox="([\d ]+)"/.exec(drawing)?.[1];
    const [ground, code] = [...drawing.matchAll(/ d="([^"]+)"/g)].map(([, path]) => path ?? "");
    if (viewBox === undefined || ground === undefined || code === undefined) return;
    this.element.setAttribute("viewBox", viewBox);
    const paths = [ground, code].map((shape, index) => {
      const path = document.createElementNS(SVG, "path");
      path.setAttribute("d", shape);
      path.setAttribute("fill", index === 0 ? "#fff" : "#000");
      return path;
    });
    this.element.replaceChildren(...paths);
    this.element.toggleAttribute("hidden", false);
  }
}
