// Finds out whether the server at an address knows no stream, which a browser's WebSocket does not tell.

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
