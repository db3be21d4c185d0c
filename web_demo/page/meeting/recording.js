// Whether the meeting is recorded: says so where it is not, and leads to another meeting of that kind. Knows what is offered
// only where something is kept; must not know how it is kept.

import { button, element } from "../ui/dom.js";
import { t } from "../words/words.js";
import { NOT_RECORDED } from "./meeting_address.js";

/** @import {GatewayClient} from "../../client/gateway_client.js" */

export class Recording {
  /** For the header. */
  badge = element("p", "not-recorded", t("record.off"));
  /** For the panel. */
  element = element("div", "panel");
  #hint = element("p", "hint", t("record.off_hint"));
  #start;
  #kept;
  #mayReadKept;
  #mayStart;
  #isRecorded = true;

  /**
   * @param {object} parts
   * @param {GatewayClient} parts.client
   * @param {readonly HTMLElement[]} parts.kept What shows something that was kept.
   * @param {boolean} parts.mayReadKept
   * @param {boolean} parts.mayStart Whether one may open a meeting of one's own.
   */
  constructor({ client, kept, mayReadKept, mayStart }) {
    this.#kept = kept;
    this.#mayReadKept = mayReadKept;
    this.#mayStart = mayStart;
    this.badge.dataset.testid = "not-recorded";
    this.badge.title = t("record.off_hint");
    this.#start = button("secondary", t("record.start"), "start-not-recorded", startAnother);
    this.element.append(this.#hint, this.#start);
    client.listen((event) => event.type === "session.started" && this.#show(event.record !== false));
    this.#show(true);
  }

  /** What a link to the meeting has besides. @returns {Record<string, string>} */
  get inLink() {
    return this.#isRecorded ? {} : NOT_RECORDED;
  }

  /** @param {boolean} isRecorded */
  #show(isRecorded) {
    this.#isRecorded = isRecorded;
    this.badge.hidden = this.#hint.hidden = isRecorded;
    this.#start.hidden = !isRecorded || !this.#mayStart;
    this.element.hidden = isRecorded && !this.#mayStart;
    for (const shown of this.#kept) shown.hidden = !isRecorded || !this.#mayReadKept;
  }
}

function startAnother() {
  const address = new URL(document.baseURI);
  address.search = new URLSearchParams(NOT_RECORDED).toString();
  location.assign(address);
}
