// A form for one's own name, which others see. Must not know where it is shown.

import { element } from "../ui/dom.js";
import { savePreference } from "../ui/preferences.js";
import { t } from "../words/words.js";

/** @import {GatewayClient} from "../../client/gateway_client.js" */

export class NameForm {
  element = element("form", "person-form");
  #client;
  #input = element("input", "");

  /**
   * @param {object} options
   * @param {GatewayClient} options.client
   * @param {() => void} options.onSaved
   */
  constructor({ client, onSaved }) {
    this.#client = client;
    this.#input.autocomplete = "name";
    this.#input.ariaLabel = t("name.yours");
    this.#input.placeholder = t("name.guest");
    this.element.append(this.#input, element("button", "quiet", t("name.save")));
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      const name = this.#input.value.trim();
      savePreference("name", name);
      if (name !== client.name) client.rename(name);
      onSaved();
    });
  }

  set placeholder(/** @type {string} */ words) {
    this.#input.placeholder = words;
  }

  /** Show the name as it is now, and what the gateway accepts. */
  update() {
    this.#input.maxLength = this.#client.limits?.name_chars ?? 80;
    this.#input.value = this.#client.name;
  }

  select() {
    this.#input.select();
  }
}
