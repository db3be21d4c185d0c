// Asks for name, language and role, as far as one may choose them, before one joins a meeting. Must not know the connection.

import { cover } from "../ui/cover.js";
import { element } from "../ui/dom.js";
import { untranslated } from "../settings/reading_settings.js";
import { dropdown, fieldset, labelled, radioButtons } from "../ui/form_controls.js";
import { bilingualName, nativeName, preferredLanguages, textDirection } from "../ui/languages.js";
import { loadPreference, savePreference } from "../ui/preferences.js";
import { t } from "../words/words.js";
import { heldBy } from "./meeting_title.js";

/** @typedef {import("../ui/languages.js").Language} Language */

// So many names of languages are on the cover.
const MOST_TONGUES = 8;

const FREE = { speak: true, read: true, name: "" };

/**
 * @param {object} options
 * @param {readonly Language[]} options.languages
 * @param {(tag: string) => string} options.nameOf
 * @param {string} options.meeting Its id; empty if it has none yet.
 * @param {Promise<{title: string, held_by: string}>} [options.title] What it is called.
 * @param {number} [options.nameChars] The longest name that the gateway accepts.
 * @param {{speak: boolean, read: boolean, name: string}} [options.access] `name`: one that cannot be chosen.
 * @returns {Promise<{name: string, lang: string, speaks: boolean}>}
 */
export function askToJoin({ languages, nameOf, meeting, title: asked, nameChars = 80, access = FREE }) {
  const dialog = element("dialog", "dialog join-dialog");
  dialog.ariaLabel = t("meeting.join");
  dialog.dataset.testid = "join";
  const form = element("form", "join-form");

  const name = element("input", "");
  name.autocomplete = "name";
  name.autofocus = true;
  name.maxLength = nameChars;
  name.placeholder = t("name.guest");
  name.value = [...(loadPreference("name") ?? "")].slice(0, nameChars).join("");

  const saved = loadPreference("lang") ?? "";
  const best = languages.some(({ tag }) => tag === saved) ? saved : preferredLanguages(languages)[0];
  const reads = dropdown(
    "join-lang",
    languages.map(({ tag }) => [tag, bilingualName(nameOf(tag), tag)]),
    best,
  );

  const mayChoose = access.speak && access.read;
  let role = (mayChoose ? loadPreference("part") === "speak" : access.speak) ? "speak" : "listen";
  const roles = radioButtons(
    "join",
    [
      ["listen", t("join.listen")],
      ["speak", t("join.speak")],
    ],
    role,
    (chosen) => (role = chosen),
  );

  const tongues = element("p", "tongues");
  const showTongues = () => tongues.replaceChildren(...namesOf(languages, access.read ? reads.value : ""));
  reads.addEventListener("change", showTongues);
  showTongues();
  const [code, heading] = [element("p", "hint dialog-meeting", meeting), element("h2", "", t("meeting.join"))];
  // In the places of what is there already, so that nothing moves.
  void asked?.then((named) => {
    if (!named.title) return;
    heading.replaceChildren(element("bdi", "", named.title));
    code.textContent = [meeting, heldBy(named)].filter((part) => part !== "").join(" · ");
  });
  const title = cover(...(meeting ? [code] : []), heading, tongues);
  const questions = element("div", "join-questions");
  questions.append(
    ...(access.name ? [] : [labelled(t("name.yours"), name)]),
    ...(access.read
      ? [labelled(t("join.read"), reads), element("p", "hint", untranslated(new Set(languages.map(({ tag }) => tag))))]
      : []),
    ...(mayChoose ? [fieldset(t("join.role"), roles)] : []),
  );
  form.append(title, questions, element("button", "primary", t("join.action")));
  dialog.append(form);
  document.body.append(dialog);

  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const answer = { name: access.name || name.value.trim(), lang: reads.value, speaks: role === "speak" };
      if (!access.name) savePreference("name", answer.name);
      if (access.read) savePreference("lang", answer.lang);
      if (mayChoose) savePreference("part", role);
      dialog.remove();
      resolve(answer);
    });
    // There is nothing to go back to behind the dialog. Browsers close it anyway if Escape is pressed twice.
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => dialog.isConnected && dialog.showModal());
    dialog.showModal();
  });
}

/**
 * The languages of the meeting by their own names, with a line below the one that is read.
 * @param {readonly Language[]} languages
 * @param {string} chosen
 */
function namesOf(languages, chosen) {
  const first = languages.filter(({ tag }, place) => tag === chosen || place < MOST_TONGUES);
  const names = first.map(({ tag, name }) => {
    const made = element(tag === chosen ? "b" : "span", "", nativeName(tag) || name);
    return Object.assign(made, { lang: tag, dir: textDirection(tag) });
  });
  const more = languages.length - names.length;
  return more > 0 ? [...names, element("span", "", `+${more}`)] : names;
}
