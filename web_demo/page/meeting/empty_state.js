// Shown instead of the transcript until something is said: whether anybody is there, and what one can do here. Must not know how it is done.

import { NameForm } from "../people/name_form.js";
import { button, element, setIfChanged } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @import {GatewayClient} from "../../client/gateway_client.js" */

const PRESENCE = /^(session\.started|participant\.(joined|left))$/;

export class EmptyState {
  element = element("div", "empty-state");
  /** The button of the sample meeting. Whether it is shown changes with who is there. */
  play;
  #client;
  #isHost;
  #speak;
  #title = element("h2", "");
  #text = element("p", "");
  #isReader = false;

  /**
   * @param {object} options An action that is null is not offered.
   * @param {GatewayClient} options.client
   * @param {boolean} options.isHost Whether this page has opened the meeting.
   * @param {() => void} options.onPlaySample
   * @param {(() => void) | null} options.onInvite
   * @param {(() => void) | null} options.onSpeak
   * @param {boolean} options.asksForName Whether the user has not been asked for a name yet.
   * @param {HTMLElement} options.model Which model answers.
   */
  constructor({ client, isHost, onPlaySample, onInvite, onSpeak, asksForName, model }) {
    this.#client = client;
    this.#isHost = isHost;
    this.element.dataset.testid = "empty-state";
    this.play = button("primary", t("empty.play"), "empty-play", onPlaySample);
    const others = element("div", "others");
    this.#speak = onSpeak && button("secondary", t("empty.speak"), "empty-speak", onSpeak);
    if (this.#speak !== null) others.append(this.#speak);
    if (onInvite !== null) others.append(button("secondary", t("empty.invite"), "empty-invite", onInvite));
    this.element.append(this.#title, this.#text, this.play, others);
    if (asksForName) this.#askForName();
    this.element.append(model);
    client.listen((event) => {
      if (PRESENCE.test(event.type)) this.#show();
      // Who is not let in knows nothing of the meeting.
      if (event.type === "state") this.element.hidden = event.state === "closed";
    });
    this.#show();
  }

  /** Whether its user says nothing here. */
  set isReader(/** @type {boolean} */ isReader) {
    this.#isReader = isReader;
    this.#show();
  }

  #show() {
    if (this.#speak !== null) this.#speak.hidden = this.#isReader;
    const isAlone = this.#client.started !== null && this.#client.participants.size === 0;
    const [title, text] = this.#isHost
      ? [t("empty.title"), t("empty.text")]
      : isAlone
        ? [t("empty.alone"), t(this.#speak === null ? "empty.alone_read" : "empty.alone_speak")]
        : [t("empty.silent"), t("empty.silent_text")];
    setIfChanged(this.#title, "textContent", title);
    setIfChanged(this.#text, "textContent", text);
  }

  /** The host of a meeting is not asked before it, and may leave the name out. */
  #askForName() {
    const client = this.#client;
    const ask = element("div", "ask-name");
    ask.dataset.testid = "ask-name";
    const form = new NameForm({ client, onSaved: () => this.#speak?.focus() });
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
