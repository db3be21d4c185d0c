// Has the browser keep a page that is shown without a connection. Must not know what is on it.

/** Which release of the page this is: files of another one have other addresses. */
const release = /\/assets\/([^/]+)\//.exec(import.meta.url)?.[1] ?? "";

export async function keepOfflineShell() {
  // Absent without TLS.
  if (navigator.serviceWorker === undefined) return;
  const url = new URL("./service_worker.js", document.baseURI);
  url.searchParams.set("release", release);
  try {
    await navigator.serviceWorker.register(trusted(url.href));
  } catch {
    // The browser or its user allows none; everything but the offline page works.
  }
}

/**
 * The address of the one worker, as the page's policy wants it.
 * @param {string} url
 * @returns {string}
 */
function trusted(url) {
  /** @type {{createPolicy: (name: string, rules: object) => {createScriptURL: (url: string) => string}} | undefined} */
  const types = /** @type {any} */ (window).trustedTypes;
  return types === undefined
    ? url
    : types.createPolicy("service-worker", { createScriptURL: () => url }).createScriptURL(url);
}
