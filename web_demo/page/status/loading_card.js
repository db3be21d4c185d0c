// Shown while the engine cannot translate: the reason, and how long it has been waiting. Must not know who asks the
// gateway.

import { element } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @typedef {import("./readiness_poller.js").Readiness} Readiness */

/** @type {Readonly<Record<Readiness["status"], {title: string, hint: string}>>} */
const TEXTS = {
  ready: { title: "", hint: "" },
  starting: { title: t("loading.starting"), hint: t("loading.starting.hint") },
  failed: { title: t("loading.failed"), hint: t("loading.failed.hint") },
  draining: { title: t("loading.draining"), hint: t("loading.draining.hint") },
  unreachable: { title: t("loading.unreachable"), hint: t("loading.unreachable.hint") },
};

/** @param {string} text */
function asSentence(text) {
  if (!text) return "";
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…。]$/.test(capital) ? capital : `${capital}.`;
}

export class LoadingCard {
  #title = element("h2", "");
  #elapsed = element("span", "elapsed");
  #reason = element("p", "reason");
  #hint = element("p", "hint");
  /** When the wait began, by `performance.now()`; null while the engine is ready. @type {number | null} */
  #since = null;

  constructor() {
    this.element = element("section", "card loading");
    this.element.dataset.testid = "loading";
    this.element.hidden = true;
    this.#elapsed.dataset.testid = "loading-elapsed";
    this.#reason.dir = "auto"; // the gateway's own words, in English
    this.#reason.dataset.testid = "loading-reason";
    const spinner = element("div", "spinner");
    spinner.ariaHidden = "true";
    const top = element("div", "loading-top");
    top.append(this.#title, this.#elapsed);
    const body = element("div", "");
    body.append(top, this.#reason, this.#hint);
    this.element.append(spinner, body);
    setInterval(() => this.#showElapsed(), 1_000);
  }

  /** @param {Readiness} readiness */
  show({ status, reason }) {
    this.element.hidden = status === "ready";
    this.element.dataset.state = status;
    this.#since = status === "ready" ? null : (this.#since ?? performance.now());
    const { title, hint } = TEXTS[status];
    if (this.#title.textContent !== title) this.#title.textContent = title;
    this.#hint.textContent = hint;
    this.#reason.textContent = asSentence(reason);
    this.#showElapsed();
  }

  #showElapsed() {
    if (this.#since !== null) this.#elapsed.textContent = `${Math.floor((performance.now() - this.#since) / 1000)} s`;
  }
}
