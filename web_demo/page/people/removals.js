// Keeps on this device from which meetings a host has removed its user: where no token says who comes, the gateway cannot
// know it. Must not know how one gets in.

import { loadPreference, savePreference } from "../ui/preferences.js";

const STORAGE_KEY = "removed";
const MOST = 50;

function meetings() {
  return (loadPreference(STORAGE_KEY) ?? "").split(" ").filter(Boolean);
}

/** @param {string} meeting Its id. */
export function wasRemoved(meeting) {
  return meetings().includes(meeting);
}

/** @param {string} meeting Its id. @param {boolean} isRemoved Whether its user is still not to come back. */
export function saveRemoval(meeting, isRemoved) {
  const others = meetings().filter((each) => each !== meeting);
  savePreference(STORAGE_KEY, [...others, ...(isRemoved ? [meeting] : [])].slice(-MOST).join(" "));
}
