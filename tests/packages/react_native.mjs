// The installed package as Metro gives it to React Native, in a context that has only what React Native 0.76 has: CommonJS
// with private members compiled away (in the folder `compiled`), the globals of its InitializeCore and of Hermes, and its
// `WebSocket`, which differs from that of browsers. Exports what the package does.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import vm from "node:vm";

const Platform = WebSocket;

/** As `Libraries/WebSocket/WebSocket.js`: subprotocols are a string or a list, and a close without a code is 1000. */
class ReactNativeSocket {
  readyState = 0;
  #binaryType;
  #listeners = new Map();
  #socket;

  constructor(url, protocols) {
    this.#socket = new Platform(url, protocols);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.onopen = () => this.#dispatch({ type: "open" }, 1);
    this.#socket.onmessage = ({ data }) => this.#dispatch({ type: "message", data }, 1);
    this.#socket.onclose = ({ code, reason }) => this.#dispatch({ type: "close", code, reason }, 3);
  }

  set binaryType(type) {
    if (type !== "blob" && type !== "arraybuffer") throw new Error("binaryType must be either 'blob' or 'arraybuffer'");
    this.#binaryType = type;
  }

  get binaryType() {
    return this.#binaryType;
  }

  addEventListener(type, listener) {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  #dispatch(event, readyState) {
    this.readyState = readyState;
    for (const listener of this.#listeners.get(event.type) ?? []) listener(event);
  }

  send(data) {
    if (this.readyState === 0) throw new Error("INVALID_STATE_ERR");
    if (typeof data !== "string" && !ArrayBuffer.isView(data)) throw new Error("Unsupported data type");
    this.#socket.send(data);
  }

  close(code, reason) {
    if (this.readyState >= 2) return;
    this.readyState = 2;
    this.#socket.close(typeof code === "number" ? code : 1000, typeof reason === "string" ? reason : "");
  }
}

/** As whatwg-fetch, which React Native has: it tells caches by the address that nothing is to be stored. */
function reactNativeFetch(url, { cache, ...options } = {}) {
  const isFresh = cache === "no-store" || cache === "no-cache";
  return fetch(isFresh ? `${url}${url.includes("?") ? "&" : "?"}_=${Date.now()}` : url, options);
}

const globals = {
  WebSocket: ReactNativeSocket,
  fetch: reactNativeFetch,
  setTimeout: (run, ms) => Number(setTimeout(run, ms)),
  clearTimeout: (id) => clearTimeout(id),
  queueMicrotask,
  performance: { now: () => performance.now() },
  console,
  TextEncoder,
};
const context = vm.createContext(globals);
// Of what V8 has and Hermes has not, what a script might use.
vm.runInContext(
  `for (const name of ["toSorted", "toReversed", "toSpliced", "with", "findLast", "findLastIndex"]) delete Array.prototype[name];
   for (const name of Reflect.ownKeys(Iterator.prototype)) if (typeof name === "string") delete Iterator.prototype[name];
   for (const name of ["union", "intersection", "difference", "isSubsetOf"]) delete Set.prototype[name];
   delete Object.groupBy; delete Map.groupBy; delete Promise.withResolvers; delete Promise.try; delete Array.fromAsync;
   delete globalThis.Iterator;`,
  context,
);

const modules = new Map();

function load(file) {
  const known = modules.get(file);
  if (known) return known.exports;
  const module = { exports: {} };
  modules.set(file, module);
  const code = `(function (exports, require, module) {${readFileSync(file, "utf8")}\n})`;
  const require = (name) => load(join(dirname(file), name));
  vm.runInContext(code, context, { filename: file })(module.exports, require, module);
  return module.exports;
}

export const { GatewayClient, TranscriptError, fetchTranscript } = load(
  join(import.meta.dirname, "compiled/client.js"),
);
