// Finds out what is wrong with an address where no stream opens, which a browser's WebSocket does not tell: its path, its
// scheme or its port.

/** @import {Reason} from "../session/connection_status.js" */

// Errors of Node's fetch (`cause.code`) that a server gives which speaks TLS, though nobody here trusts it.
const OF_TLS = /CERT|SIGNATURE|ERR_TLS/;

/**
 * @param {string} url That of the stream, `ws(s)://`.
 * @returns {Promise<boolean>} False, too, where it cannot be known: pages of other origins may not read the answer.
 */
export async function isNotFound(url) {
  const address = url.replace(/^ws/i, "http");
  // A gateway's answer to this is a success, of which browsers write nothing to the console. A proxy may not pass it on.
  return (await isMissing(address.replace(/\/v1\/stream$/, "/healthz"))) && isMissing(address);
}

/** @param {string} address */
async function isMissing(address) {
  try {
    return (await fetch(address, { cache: "no-store", credentials: "omit" })).status === 404;
  } catch {
    return false;
  }
}

/**
 * Why the client does not try again.
 * @param {string} url
 */
export function notFound(url) {
  const address = url.replace(/\/v1\/stream$/, "");
  const origin = /^\w+:\/\/[^/]*/.exec(address)?.[0];
  const hint = address === origin ? "" : ` Is the path right? Without a proxy in front, the address is ${origin}.`;
  return { code: "not_found", message: `There is no gateway at ${address}: it answers with HTTP status 404.${hint}` };
}

/**
 * What is wrong with the scheme or the port, as far as the platform tells. The server may come back, so it is no reason to
 * give up.
 * @param {string} url That of the stream, `ws(s)://`.
 * @returns {Promise<Reason | null>} Null if nothing is known to be wrong.
 */
export async function misaddressed(url) {
  const { protocol, host } = new URL(url);
  // A page has come from there.
  if (globalThis.location?.host === host) return null;
  const scheme = protocol === "wss:" ? "https" : "http";
  const answer = await ask(scheme, host);
  if (answer === "answers") return null;
  const other = scheme === "https" ? "http" : "https";
  if ((await ask(other, host)) === "answers")
    return unreachable(`The server at ${host} speaks ${other}, not ${scheme}: the address is ${other}://${host}.`);
  if (answer === "ECONNREFUSED") return unreachable(`Nothing listens at ${host}. Is the port right?`);
  if (answer === "ENOTFOUND") return unreachable(`There is no server with the name of ${host}.`);
  return null;
}

/** @param {string} message */
function unreachable(message) {
  return { code: "unreachable", message };
}

/**
 * Whether a server speaks a scheme. A page may not read the answer of another origin, but knows that there is one.
 * @param {string} scheme
 * @param {string} host
 * @returns {Promise<string>} `answers`; otherwise the code of the error, where there is one.
 */
async function ask(scheme, host) {
  try {
    const answer = await fetch(`${scheme}://${host}/healthz`, {
      mode: "no-cors",
      cache: "no-store",
      credentials: "omit",
    });
    // What nginx says to HTTP on a port for TLS.
    return answer.status === 400 ? "refuses" : "answers";
  } catch (error) {
    const code = String(/** @type {any} */ (error)?.cause?.code ?? "");
    return OF_TLS.test(code) && !code.includes("WRONG_VERSION") ? "answers" : code;
  }
}
