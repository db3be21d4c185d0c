// What only a host may do with the whole meeting: name it, lock it, and end it for everyone. Must not know who is in it.

import { button, element } from "../ui/dom.js";
import { labelled } from "../ui/form_controls.js";
import { t } from "../words/words.js";
import { confirmed } from "./confirm_dialog.js";

/** @import {GatewayClient} from "../../client/gateway_client.js" */

export class HostControls {
  element = element("section", "panel-group");
  /** What the others are told. */
  lockNote = element("p", "hint", t("host.locked"));
  #client;
  #lock = element("input", "");
  #title = element("input", "");
  #form = element("form", "person-form title-form");
  /** The title that this host has given, and under which name. */
  #given = { title: "", name: "" };
  /** What the gateway said last. */
  #isLocked = false;

  /** @param {GatewayClient} client */
  constructor(client) {
    this.#client = client;
    this.#lock.type = "checkbox";
    this.#lock.dataset.testid = "lock";
    this.#lock.setAttribute("aria-describedby", "lock-hint");
    this.#lock.addEventListener("change", () => this.#ask());
    const lock = element("label", "panel-check");
    lock.append(this.#lock, t("host.lock"));
    const hint = element("p", "hint", t("host.lock_hint"));
    hint.id = "lock-hint";
    const end = button("secondary danger", t("host.end"), "end-meeting", () => void this.#end());
    this.#title.dataset.testid = "title";
    this.#title.autocomplete = "off";
    this.#form.append(labelled(t("host.title"), this.#title), element("button", "quiet", t("name.save")));
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#entitle(this.#title.value.trim());
      this.#title.defaultValue = this.#title.value; // the answer may take its place
    });
    this.element.append(this.#form, lock, hint, end);
    this.element.dataset.testid = "host";
    this.lockNote.dataset.testid = "lock-note";
    this.element.hidden = this.lockNote.hidden = true;
    client.listen((event) => {
      switch (event.type) {
        case "session.started":
          this.element.hidden = event.host !== true;
          this.#title.maxLength = event.limits.name_chars;
          this.#showTitle(event.title ?? "");
          this.#followName(event.title ?? "", event.held_by ?? "");
          return this.#show(event.locked === true);
        case "meeting.locked":
          return this.#show(event.locked);
        case "meeting.titled":
          return this.#showTitle(event.title);
        case "error": // it may be the answer
        case "state": // the answer may never come
          return this.#show(this.#isLocked);
      }
    });
  }

  /** @param {string} title */
  #entitle(title) {
    this.#given = { title, name: this.#client.name };
    this.#client.entitle(title);
  }

  /** The meeting is held by the name that its host has now. @param {string} title @param {string} heldBy */
  #followName(title, heldBy) {
    const { title: given, name } = this.#given;
    if (given && given === title && name === heldBy && name !== this.#client.name) this.#entitle(title);
  }

  /** Unless the host is typing another one. @param {string} title */
  #showTitle(title) {
    const isTyping = document.activeElement === this.#title && this.#title.value !== this.#title.defaultValue;
    this.#title.defaultValue = title;
    if (!isTyping) this.#title.value = title;
  }

  #ask() {
    this.#client.lock(this.#lock.checked);
    if (this.#client.state !== "open") this.#show(this.#isLocked); // nothing was asked for
  }

  /** @param {boolean} isLocked */
  #show(isLocked) {
    this.#isLocked = isLocked;
    this.#lock.checked = isLocked;
    this.lockNote.hidden = !isLocked || !this.element.hidden;
  }

  async #end() {
    const question = { title: t("host.end_title"), texts: [t("host.end_text")], action: t("host.end") };
    if (await confirmed(question)) this.#client.endMeeting();
  }
}
