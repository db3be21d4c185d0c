// Where one speaks, or reads that one does not. Must not know what is said.

import { button, element } from "../ui/dom.js";
import { t } from "../words/words.js";

/** @import {Access} from "../access/access.js" */
/** @import {Composer} from "../speaking/composer.js" */

export class SpeakingArea {
  element = element("div", "speaking");
  #composer;
  #listening = element("p", "listening hint");

  /** @param {{composer: Composer, access: Access, onSpeak: () => void}} options */
  constructor({ composer, access, onSpeak }) {
    this.#composer = composer;
    this.#listening.append(access.read ? t("speaking.reading") : t("speaking.neither"));
    if (access.speak) this.#listening.append(" ", button("quiet", t("speaking.too"), "speak-too", onSpeak));
    this.element.append(this.#listening, composer.element);
    this.show(true);
  }

  /** Whether readers are offered to speak, too. */
  set isOffered(/** @type {boolean} */ isOffered) {
    for (const part of this.#listening.children) part.toggleAttribute("hidden", !isOffered);
  }

  get isSpeaking() {
    return !this.#composer.element.hidden;
  }

  /** @param {boolean} isSpeaking */
  show(isSpeaking) {
    this.#composer.element.hidden = !isSpeaking;
    this.#listening.hidden = isSpeaking;
  }
}
