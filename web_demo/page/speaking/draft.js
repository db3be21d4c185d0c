// Keeps what was typed or heard and not sent when the page is loaded again, in this tab alone. Must not know how it is said.

const STORAGE_KEY = "draft";

/** @param {string} meeting Its id. */
export function loadDraft(meeting) {
  try {
    const [id, ...draft] = (sessionStorage.getItem(STORAGE_KEY) ?? "").split(" ");
    return id === meeting ? draft.join(" ") : "";
  } catch {
    return "";
  }
}

/** @param {string} meeting @param {string} text */
export function saveDraft(meeting, text) {
  try {
    sessionStorage.setItem(STORAGE_KEY, `${meeting} ${text}`);
  } catch {
    // Without storage it is lost with the page.
  }
}
