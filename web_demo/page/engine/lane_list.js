// Several engines, each with what it is doing. Shows nothing where there is only one. Must not know who asks the gateway.

import { element, setIfChanged } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @typedef {import("../status/readiness_poller.js").EngineStatus} EngineStatus */
/** @typedef {import("../status/status_label.js").Severity} Severity */

/** Status → how it looks, and what it means. @type {Readonly<Record<string, [Severity, import("../words/en.js").Key]>>} */
const STATUSES = {
  ready: ["good", "lanes.ready"],
  starting: ["busy", "lanes.starting"],
  restarting: ["busy", "lanes.restarting"],
  draining: ["busy", "lanes.draining"],
  failed: ["bad", "lanes.failed"],
  stopped: ["bad", "lanes.stopped"],
};

/** @param {EngineStatus} engine */
function workOf({ status, running, waiting, seats }) {
  const isWorking = status === "ready" || status === "draining";
  if (!isWorking) return "";
  return t(waiting > 0 ? "lanes.seats_waiting" : "lanes.seats", { running, seats, waiting });
}

export class LaneList {
  element = element("section", "lanes");
  #list = element("ul", "lanes-list");
  #queue = element("p", "hint");
  /** Name → its row. @type {Map<string, HTMLLIElement>} */
  #rows = new Map();

  constructor() {
    this.element.hidden = true;
    this.element.dataset.testid = "lanes";
    this.element.setAttribute("aria-label", t("lanes.title"));
    this.#queue.dataset.testid = "lanes-queue";
    this.element.append(element("h3", "", t("lanes.title")), this.#list, this.#queue);
  }

  /**
   * @param {readonly EngineStatus[]} engines
   * @param {number} waiting How many translations wait until it is their turn in one of them.
   */
  show(engines, waiting) {
    this.element.hidden = engines.length === 0;
    const names = new Set(engines.map(({ name }) => name));
    for (const [name, row] of this.#rows) {
      if (names.has(name)) continue;
      row.remove();
      this.#rows.delete(name);
    }
    for (const engine of engines) this.#showOne(engine);
    setIfChanged(this.#queue, "textContent", waiting > 0 ? t("lanes.queue", { count: waiting }) : "");
  }

  /** @param {EngineStatus} engine */
  #showOne(engine) {
    let row = this.#rows.get(engine.name);
    if (row === undefined) {
      row = element("li", "lane");
      row.dataset.testid = "lane";
      row.append(element("span", "lane-name", engine.name), element("span", "lane-state"), element("span", "hint"));
      this.#rows.set(engine.name, row);
      this.#list.append(row);
    }
    const [severity, key] = STATUSES[engine.status] ?? ["busy", null];
    const work = workOf(engine);
    row.dataset.state = severity;
    const [, state, reason] = row.children;
    if (state)
      setIfChanged(
        state,
        "textContent",
        [key === null ? engine.status : t(key), work].filter(Boolean).join(t("list.comma")),
      );
    // How far it is loaded, or why it failed; what leaves is clear by itself.
    if (reason) setIfChanged(reason, "textContent", work ? "" : engine.reason);
  }
}
