// Shows the offline page where the page cannot be loaded. It stores nothing else, so that a newer gateway never meets an
// older page: with a connection, everything comes from the gateway.

/** @typedef {Event & {waitUntil: (work: Promise<unknown>) => void}} LifecycleEvent */
/** @typedef {Event & {request: Request, respondWith: (answer: Promise<Response>) => void}} FetchEvent */

const CACHE = "offline";
const OFFLINE_PAGE = "./offline/offline.html";
const PARTS = [
  OFFLINE_PAGE,
  "./offline/offline.css",
  "./page/tokens.css",
  "./page/fonts/commissioner-latin.woff2",
  "./offline/offline.js",
  "./offline/offline_words.js",
  "./favicon.svg",
].map(absolute);

/** @param {string} path */
function absolute(path) {
  return new URL(path, location.href).href;
}

async function store() {
  const cache = await caches.open(CACHE);
  await cache.addAll(PARTS.map((url) => new Request(url, { cache: "reload" })));
}

/**
 * @param {Request} request
 * @param {string} otherwise Address of what is stored.
 */
async function fromNetwork(request, otherwise) {
  try {
    return await fetch(request);
  } catch (error) {
    const stored = await caches.match(otherwise);
    if (stored === undefined) throw error;
    return stored;
  }
}

self.addEventListener("install", (event) => {
  /** @type {LifecycleEvent} */ (event).waitUntil(store());
});

self.addEventListener("fetch", (event) => {
  const { request, respondWith } = /** @type {FetchEvent} */ (event);
  const address = request.url.replace(/[?#].*$/, "");
  const isPage = request.mode === "navigate" && [absolute("./"), absolute("./index.html")].includes(address);
  if (isPage) respondWith.call(event, fromNetwork(request, absolute(OFFLINE_PAGE)));
  else if (PARTS.includes(address)) respondWith.call(event, fromNetwork(request, address));
});
