// Shown once the meeting is over, or was left: how long one was there, what there is to keep, and the way back. Must not know
// the connection.

import { cover } from "../ui/cover.js";
import { button, element } from "../ui/dom.js";
import { clock, pageLanguage, t } from "../words/words.js";

const MINUTE_S = 60;
const HOUR_MIN = 60;

export class LastScreen {
  element = element("section", "last-screen");
  #title = element("h2", "");
  #what = element("p", "");
  #stayed = element("p", "hint");
  #keep = element("div", "last-keep");
  #join;

  /** @param {() => void} onJoin */
  constructor(onJoin) {
    this.element.dataset.testid = "last-screen";
    this.element.hidden = true;
    this.#title.tabIndex = -1; // it gets the focus, as what had it is gone
    this.#join = button("primary", t("end.join"), "join-again", () => {
      this.#join.disabled = true;
      onJoin();
    });
    this.element.append(cover(this.#title, this.#what, this.#stayed, this.#join), this.#keep);
  }

  /**
   * @param {"left" | "ended" | "removed"} how
   * @param {object} more
   * @param {boolean} more.goesOn Whether others are still in the meeting.
   * @param {number | null} more.stayedMs Null if there was no session: the page was opened after one was removed.
   * @param {HTMLElement} more.keep What there is to keep.
   */
  show(how, { goesOn, stayedMs, keep }) {
    const now = clock(new Date());
    this.#title.textContent = { left: t("end.left"), ended: t("end.ended"), removed: t("end.removed") }[how];
    const isBack = how === "removed" && stayedMs === null;
    const whatNow = {
      left: goesOn ? t("end.goes_on") : "",
      removed: t(isBack ? "end.removed_back" : "end.removed_text"),
    };
    this.#what.textContent = how === "ended" ? t("end.ended_at", { time: now }) : whatNow[how];
    // A participant who was removed is not invited to come back at once.
    this.#join.hidden = how === "removed" && !isBack;
    this.#stayed.textContent = stayedMs === null ? "" : t("end.stayed", { time: duration(stayedMs) });
    this.#keep.replaceChildren(keep);
    this.element.hidden = false;
    this.allowJoin();
    this.#title.focus();
  }

  /** It can be tried again. */
  allowJoin() {
    this.#join.disabled = false;
  }
}

/** Such as "1 hour, 5 minutes" in the page's language. @param {number} ms */
function duration(ms) {
  const seconds = Math.round(ms / 1_000);
  const minutes = Math.round(seconds / MINUTE_S);
  if (minutes === 0) return amount(Math.max(1, seconds), "second");
  const hours = Math.floor(minutes / HOUR_MIN);
  const parts = [hours > 0 && amount(hours, "hour"), minutes % HOUR_MIN > 0 && amount(minutes % HOUR_MIN, "minute")];
  return new Intl.ListFormat(pageLanguage(), { type: "unit" }).format(parts.filter((part) => part !== false));
}

/** @param {number} value @param {"hour" | "minute" | "second"} unit */
function amount(value, unit) {
  return new Intl.NumberFormat(pageLanguage(), { style: "unit", unit, unitDisplay: "long" }).format(value);
}
