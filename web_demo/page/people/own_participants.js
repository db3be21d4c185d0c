// Keeps under which ids this tab has taken part in a meeting: after a reload its user is another participant. Must not know
// what they said.

const STORAGE_KEY = "participants";
const MOST = 20;

/**
 * Remember one more.
 * @param {string} meeting Its id.
 * @param {string} participant
 * @returns {string[]} All of them, without storage this one alone.
 */
export function rememberParticipant(meeting, participant) {
  try {
    const [id, ...known] = (sessionStorage.getItem(STORAGE_KEY) ?? "").split(" ");
    const all = [...new Set([...(id === meeting ? known : []), participant])].slice(-MOST);
    sessionStorage.setItem(STORAGE_KEY, [meeting, ...all].join(" "));
    return all;
  } catch {
    return [participant];
  }
}
