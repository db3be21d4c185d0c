// Shown instead of the transcript until something is said: what one can do here. Must not know how it is done.

import { NameForm } from "../people/name_form.js";
import { button, element } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @import {GatewayClient} from "../../client/gateway_client.js" */

export class EmptyState {
  element = element("div", "empty-state");
  /** The button of the sample meeting. Whether it is shown changes with who is there. */
  play;

  /**
   * @param {object} actions An action that is null is not offered.
   * @param {() => void} actions.onPlaySample
   * @param {(() => void) | null} actions.onInvite
   * @param {(() => void) | null} actions.onSpeak
   * @param {GatewayClient | null} actions.asksForName Who has not been asked for a name yet.
   * @param {HTMLElement} actions.model Which model answers.
   */
  constructor({ onPlaySample, onInvite, onSpeak, asksForName, model }) {
    this.play = button("primary", t("empty.play"), "empty-play", onPlaySample);
    const others = element("div", "others");
    const speak = onSpeak && button("secondary", t("empty.speak"), "empty-speak", onSpeak);
    if (speak !== null) others.append(speak);
    if (onInvite !== null) others.append(button("secondary", t("empty.invite"), "empty-invite", onInvite));
    this.element.append(element("h2", "", t("empty.title")), element("p", "", t("empty.text")), this.play, others);
    if (asksForName !== null) this.#askForName(asksForName, () => speak?.focus());
    this.element.append(model);
  }

  /**
   * The host of a meeting is not asked before it, and may leave the name out.
   * @param {GatewayClient} client
   * @param {() => void} onSaved
   */
  #askForName(client, onSaved) {
    const ask = element("div", "ask-name");
    ask.dataset.testid = "ask-name";
    const form = new NameForm({ client, onSaved });
    form.placeholder = t("name.yours");
    ask.append(form.element, element("p", "hint", t("name.hint")));
    this.element.append(ask);
    const show = () => {
      ask.hidden = client.name !== "";
      if (!ask.contains(document.activeElement)) form.update(); // not while the user types
    };
    client.listen(({ type }) => type === "session.started" && show());
    show();
  }
}
