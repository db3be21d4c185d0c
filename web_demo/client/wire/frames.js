// Messages as frames: JSON in text frames, or msgpack in binary ones, by a codec that the user of the client brings. Must
// not know what the messages mean.

import { wellFormed } from "./well_formed.js";

/**
 * Encodes and decodes msgpack, as the module `@msgpack/msgpack` does.
 * @typedef {object} Codec
 * @property {(message: object) => Uint8Array} encode
 * @property {(frame: Uint8Array) => any} decode
 */

// The message `{ type: "ping" }`.
const PING = Uint8Array.of(0x81, 0xa4, ...new TextEncoder().encode("type"), 0xa4, ...new TextEncoder().encode("ping"));

export class Frames {
  #codec;

  /** @param {Codec | undefined} codec For JSON none is needed. */
  constructor(codec) {
    this.#codec = codec;
    if (codec && !(codec.encode instanceof Function && codec.decode instanceof Function)) {
      throw new TypeError("A codec has the functions `encode` and `decode`, as the module @msgpack/msgpack has them.");
    }
    // With another one, the gateway would end every connection, and the client open the next.
    if (codec && !isMsgpack(codec)) {
      throw new TypeError(
        "A codec makes a Uint8Array of msgpack of an object, and an object of it: @msgpack/msgpack does.",
      );
    }
  }

  /** What the gateway is asked to speak. */
  get subprotocol() {
    return this.#codec ? "translation.v1.msgpack" : "translation.v1.json";
  }

  /** @param {object} message */
  encode(message) {
    const sent = wellFormed(message);
    if (!this.#codec) return JSON.stringify(sent);
    // JSON leaves out what is undefined. Codecs do not, and not all write it in a way that the gateway reads.
    return this.#codec.encode(Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined)));
  }

  /**
   * @param {any} frame Text, or an `ArrayBuffer`.
   * @returns {any} The message; undefined for a frame of the other kind.
   */
  decode(frame) {
    if (typeof frame === "string") return this.#codec ? undefined : JSON.parse(frame);
    return this.#codec?.decode(new Uint8Array(frame));
  }
}

/** @param {Codec} codec */
function isMsgpack(codec) {
  try {
    const frame = codec.encode({ type: "ping" });
    return ArrayBuffer.isView(frame) && [frame, PING].every((bytes) => codec.decode(bytes).type === "ping");
  } catch {
    return false;
  }
}

/** @param {string | Uint8Array} frame */
export function bytesOf(frame) {
  return typeof frame === "string" ? new TextEncoder().encode(frame).length : frame.length;
}
