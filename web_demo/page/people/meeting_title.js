// What the meeting is called: in the bar, the browser's tab and what others are invited with. Must not know who may change it.

import { element, find } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @import {GatewayClient} from "../../client/gateway_client.js" */

const ASKED_MS = 5_000;

export class MeetingTitle {
  #heading = find("heading", HTMLHeadingElement);
  #product = this.#heading.textContent;
  #title = { title: "", held_by: "" };

  /** @param {GatewayClient} client */
  constructor(client) {
    client.listen((event) => {
      if (event.type !== "session.started" && event.type !== "meeting.titled") return;
      this.#title = { title: event.title ?? "", held_by: event.held_by ?? "" };
      this.#show();
    });
  }

  get text() {
    return this.#title.title;
  }

  /** With who holds it, in one line; empty without a title. */
  get line() {
    return titleLine(this.#title);
  }

  #show() {
    const held = element("small", "held-by", heldBy(this.#title));
    const title = element("bdi", "", this.text || this.#product);
    this.#heading.replaceChildren(title, ...(held.textContent ? [" ", held] : []));
    this.#heading.parentElement?.classList.toggle("titled", this.text !== "");
    document.title = [this.text, this.#product].filter((part) => part !== "").join(" · ");
  }
}

/** With who holds it, in one line; empty without a title. @param {{title: string, held_by: string}} named */
export function titleLine(named) {
  return [named.title, heldBy(named)].filter((part) => part !== "").join(" · ");
}

/** @param {{title: string, held_by: string}} title */
export function heldBy({ title, held_by }) {
  return title && held_by ? t("title.held_by", { name: held_by }) : "";
}

/**
 * What a meeting is called, before one joins it.
 * @param {string} meeting Its id.
 * @param {(() => Promise<string>) | null} token Gets a fresh token; null where none is needed.
 * @returns {Promise<{title: string, held_by: string}>} Empty also where that is not known.
 */
export async function askForTitle(meeting, token) {
  try {
    const headers = token ? { Authorization: `Bearer ${await token()}` } : {};
    const signal = AbortSignal.timeout(ASKED_MS);
    const answer = await fetch(`./v1/meetings/${encodeURIComponent(meeting)}`, { cache: "no-store", headers, signal });
    if (answer.ok) return await answer.json();
  } catch {
    // It is told after one has joined.
  }
  return { title: "", held_by: "" };
}
