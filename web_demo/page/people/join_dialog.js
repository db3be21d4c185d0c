// Asks who joins, and for what. Knows what this browser remembers of earlier answers; must not know the connection.

import { bothNames, dropdown, group, labelled, radios } from "../ui/form_controls.js";
import { element } from "../ui/dom.js";
import { preferred } from "../ui/languages.js";
import { recall, remember } from "../ui/preferences.js";

/** @typedef {import("../ui/languages.js").Language} Language */

const TITLE = "Join the meeting";

/**
 * @param {object} options
 * @param {readonly Language[]} options.languages
 * @param {(tag: string) => string} options.nameOf
 * @param {string} options.meeting Its id; empty where it has none yet.
 * @param {number} [options.nameChars] The longest name that the gateway takes.
 * @returns {Promise<{name: string, lang: string, speaks: boolean}>}
 */
export function askToJoin({ languages, nameOf, meeting, nameChars = 80 }) {
  const dialog = element("dialog", "dialog");
  dialog.ariaLabel = TITLE;
  dialog.dataset.testid = "join";
  const form = element("form", "dialog-body");

  const name = element("input", "");
  name.autocomplete = "name";
  name.autofocus = true;
  name.maxLength = nameChars;
  name.placeholder = "Guest";
  name.value = [...(recall("name") ?? "")].slice(0, nameChars).join("");

  const kept = recall("lang") ?? "";
  const best = languages.some(({ tag }) => tag === kept) ? kept : preferred(languages)[0];
  const reads = dropdown("join-lang", languages.map(({ tag }) => [tag, bothNames(nameOf(tag), tag)]), best);

  let part = recall("part") === "speak" ? "speak" : "listen";
  const parts = radios("join", [["listen", "listen"], ["speak", "speak and listen"]], part, (chosen) => (part = chosen));

  form.append(
    element("h2", "dialog-heading", TITLE),
    ...(meeting ? [element("p", "hint dialog-meeting", meeting)] : []),
    labelled("Your name", name),
    labelled("I read", reads),
    group("I want to", parts),
    element("button", "primary", "Join"),
  );
  dialog.append(form);
  document.body.append(dialog);

  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const answer = { name: name.value.trim(), lang: reads.value, speaks: part === "speak" };
      remember("name", answer.name);
      remember("lang", answer.lang);
      remember("part", part);
      dialog.remove();
      resolve(answer);
    });
    // There is nothing behind it to go back to; and a browser closes it all the same when it is asked twice.
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => dialog.isConnected && dialog.showModal());
    dialog.showModal();
  });
}
