// The list of participants, with a form for one's own name. Must not know what they say to each other.

import { button, element } from "../ui/dom.js";
import { t } from "../words/words.js";
import { confirmed } from "./confirm_dialog.js";
import { NameForm } from "./name_form.js";

/** @typedef {import("../../client/gateway_client.js").GatewayClient} GatewayClient */
/** @typedef {{speaks: string | null, reads: readonly string[], muted?: boolean | undefined}} Role What a participant does in the meeting. */

/** In `bdi`, so that a right-to-left name does not change the direction around it. @param {string} name */
function nameElement(name) {
  const span = element("span", "person-name");
  span.append(element("bdi", "", name));
  return span;
}

/** @typedef {import("../../client/messages.js").Participant} Participant */

/** @param {Role & {name: string}} participant */
function isUnnamed({ name, speaks }) {
  return speaks === null && name.trim() === "";
}

/**
 * The same for all sessions of one person, which are shown as one. Not for those with another name, as where two people share
 * a browser; undefined if nobody knows who it is.
 * @param {{name: string, person?: string | undefined}} session
 */
function identityOf({ name, person }) {
  return person === undefined ? undefined : JSON.stringify([person, name]);
}

export class PeopleList {
  element = element("section", "panel");
  #client;
  #nameOf;
  #canRename;
  #hasLink;
  #count = element("span", "panel-count");
  #list = element("ul", "people");
  #self = element("li", "person");
  #rename = button("quiet", "", "rename", () => this.#openForm());
  #form;
  #more = element("p", "hint");
  #isMuted = false;
  /** Those who have no name and say nothing, such as captions on a screen. */
  #unnamed = element("details", "people-unnamed");
  #unnamedCount = element("summary", "hint");
  #unnamedList = element("ul", "people");
  /** @type {Map<string, HTMLLIElement>} */
  #rows = new Map();

  /**
   * @param {object} options
   * @param {GatewayClient} options.client
   * @param {(tag: string) => string} options.nameOf
   * @param {boolean} [options.canRename] Whether one's own name can be chosen.
   * @param {boolean} [options.hasLink] Whether the link alone lets people in.
   */
  constructor({ client, nameOf, canRename = true, hasLink = true }) {
    this.#client = client;
    this.#nameOf = nameOf;
    this.#canRename = canRename;
    this.#hasLink = hasLink;

    const heading = element("h2", "panel-heading", `${t("tab.people")} `);
    heading.append(this.#count);
    this.#count.dataset.testid = "people-count";
    this.#list.dataset.testid = "people";
    this.#list.role = "list"; // WebKit drops the role of lists without bullets
    this.#list.ariaLabel = t("tab.people");
    this.#form = new NameForm({ client, onSaved: () => this.#closeForm() });
    this.#form.element.hidden = true;
    this.#form.element.addEventListener("keydown", (event) => {
      // An Escape that ends the conversion of an input method must not close the form.
      if (event.key !== "Escape" || event.isComposing) return;
      event.stopPropagation(); // it would close the side panel, too
      this.#closeForm();
    });
    this.#self.dataset.testid = "own";
    this.#list.append(this.#self);
    this.#unnamedCount.dataset.testid = "people-unnamed";
    this.#unnamedList.role = "list";
    this.#unnamed.append(this.#unnamedCount, this.#unnamedList);
    this.element.append(heading, this.#list, this.#unnamed, this.#more);
    this.#showAll();
    client.listen((event) => {
      if (event.type === "session.started" || event.type === "session.muted") this.#isMuted = event.muted === true;
      if (event.type === "session.started") this.#showAll();
      else if (event.type === "session.updated" || event.type === "session.muted") this.#showSelf();
      else if (event.type === "participant.joined" || event.type === "participant.updated")
        this.#showOne(event.participant);
      else if (event.type === "participant.left") this.#remove(event.participant);
    });
  }

  /** How many are listed, oneself included: not those without a name. */
  get count() {
    return this.#others.filter((one) => !isUnnamed(one)).length + 1;
  }

  /**
   * The newest session of everybody else. One whose browser crashed, or that was reloaded without a goodbye, is still there
   * for a while.
   */
  get #others() {
    /** @type {Map<string, Participant>} */
    const newest = new Map();
    for (const one of this.#client.participants.values()) {
      const key = identityOf(one) ?? one.participant;
      newest.delete(key); // it comes where the newest stands
      newest.set(key, one);
    }
    const own = identityOf({ name: this.#client.name, person: this.#client.started?.person });
    if (own !== undefined) newest.delete(own);
    return [...newest.values()];
  }

  #showSelf() {
    const own = this.#client.name.trim();
    const name = nameElement(own || t("name.you"));
    if (own) {
      const [before = "", after = ""] = t("name.own", { name: "\n" }).split("\n");
      name.prepend(before);
      name.append(after);
    }
    name.hidden = !this.#form.element.hidden;
    this.#rename.textContent = own ? t("name.rename") : t("name.add");
    this.#rename.hidden = name.hidden || !this.#canRename;
    // The button and the form stay in place, because moving them would lose the focus.
    for (const old of this.#self.querySelectorAll(":scope > span")) old.remove();
    if (!this.#self.hasChildNodes()) this.#self.append(this.#rename, this.#form.element);
    this.#self.prepend(name);
    const { speaks, reads } = this.#client;
    this.#self.append(this.#badges({ speaks, reads, muted: this.#isMuted }));
  }

  #showAll() {
    for (const id of this.#rows.keys()) this.#remove(id);
    for (const id of this.#client.participants.keys()) this.#showOne(id);
    this.#showSelf();
    this.#showCount();
  }

  /** @param {string} id */
  #showOne(id) {
    const participant = this.#client.participants.get(id);
    if (participant === undefined) return;
    const row = this.#rows.get(id) ?? this.#newRow(id);
    // The button stays in place, because moving it would lose the focus.
    for (const old of row.querySelectorAll(":scope > span")) old.remove();
    const name = participant.name.trim() || t("name.guest");
    row.prepend(nameElement(name));
    row.append(this.#badges(participant));
    const isMuted = participant.muted === true;
    const labels = {
      "mute-person": t(isMuted ? "host.unmute_named" : "host.mute_named", { name }),
      "remove-person": t("host.remove_named", { name }),
    };
    for (const [testid, label] of Object.entries(labels)) {
      const action = row.querySelector(`[data-testid="${testid}"]`);
      if (action) action.ariaLabel = label;
    }
    const mute = row.querySelector('[data-testid="mute-person"]');
    if (mute) mute.textContent = t(isMuted ? "host.unmute" : "host.mute");
    const list = isUnnamed(participant) ? this.#unnamedList : this.#list;
    if (row.parentNode !== list) list.append(row);
    this.#showCount();
  }

  /** @param {string} id */
  #newRow(id) {
    const row = element("li", "person");
    this.#rows.set(id, row);
    if (this.#client.started?.host === true) {
      row.append(
        button("quiet person-action", t("host.mute"), "mute-person", () => this.#toggleMuted(id)),
        button("quiet person-action", t("host.remove"), "remove-person", () => void this.#askToRemove(id)),
      );
    }
    return row;
  }

  /** @param {string} id */
  #toggleMuted(id) {
    this.#client.mute(id, this.#client.participants.get(id)?.muted !== true);
  }

  /** @param {string} id */
  async #askToRemove(id) {
    const name = this.#client.participants.get(id)?.name.trim() || t("name.guest");
    const texts = [t("host.remove_text", { name }), ...(this.#hasLink ? [t("host.remove_link")] : [])];
    const question = { title: t("host.remove_title", { name }), texts, action: t("host.remove") };
    if (await confirmed(question)) this.#client.remove(id);
  }

  /** @param {string} id */
  #remove(id) {
    this.#rows.get(id)?.remove();
    this.#rows.delete(id);
    this.#showCount();
  }

  /** @param {Role} role */
  #badges({ speaks, reads, muted }) {
    const badges = element("span", "person-badges");
    if (muted) badges.append(element("span", "badge muted", t("people.muted")));
    if (speaks !== null)
      badges.append(element("span", "badge speaker", t("people.speaker", { language: this.#nameOf(speaks) })));
    if (reads.length)
      badges.append(
        element("span", "badge", t("people.reader", { languages: reads.map(this.#nameOf).join(t("list.comma")) })),
      );
    return badges;
  }

  #showCount() {
    const others = this.#others;
    const listed = new Set(others.map(({ participant }) => participant));
    for (const [id, row] of this.#rows) row.hidden = !listed.has(id);
    const unnamed = others.filter(isUnnamed).length;
    this.#unnamedCount.textContent = unnamed > 0 ? t("people.unnamed", { count: unnamed }) : "";
    this.#unnamed.hidden = unnamed === 0;
    const most = this.#client.limits?.participants_shown ?? Infinity;
    const isFull = this.#client.participants.size + 1 >= most;
    this.#count.textContent = `${this.count}${isFull ? "+" : ""}`;
    this.#more.textContent = isFull ? t("people.more", { most }) : "";
  }

  // ---------------------------------------------------------------- one's own name

  #openForm() {
    this.#form.update();
    this.#form.element.hidden = false;
    this.#showSelf();
    this.#form.select();
  }

  #closeForm() {
    this.#form.element.hidden = true;
    this.#showSelf();
    this.#rename.focus();
  }
}
