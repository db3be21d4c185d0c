// Where the gateway says whether it is ready, and what that means. Must not know who asks: the page asks before its words are there.

/** Answers 200 whatever it says: browsers log every 503 to the console. */
export const READINESS_URL = "./readyz?status=200";

/** Whether translations are accepted. An engine that is restarted takes them, and they wait. @param {{status?: unknown}} body */
export function isReady({ status }) {
  return status === "ready" || status === "restarting";
}
