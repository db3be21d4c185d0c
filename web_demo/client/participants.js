// Who is in the meeting: this client and the others. Must not know what they say.

/** @import {Participant, ServerMessage, SessionStarted} from "./messages.js" */

export class Participants {
  /** By their public ids. @type {Map<string, Participant>} */
  others = new Map();
  /** This client's public id. Empty before the first session started. */
  own = "";

  /** @param {ServerMessage} message */
  onMessage(message) {
    if (message.type === "participant.joined" || message.type === "participant.updated") this.#add(message);
    else if (message.type === "participant.left") this.others.delete(message.participant);
  }

  /** @param {Participant} other */
  #add({ participant, name, speaks, reads, person, muted }) {
    const known = { ...(person && { person }), ...(muted && { muted }) };
    this.others.set(participant, { participant, name, speaks, reads, ...known });
  }

  /**
   * A session starts or is resumed.
   * @param {SessionStarted} started
   * @param {Omit<Participant, "participant">} own What others know of this client.
   * @returns {Participant[]} Those who left since the last session, and this client under its old id.
   */
  start(started, { name, speaks, reads }) {
    const before = [...this.others.values()];
    if (this.own && this.own !== started.participant) before.push({ participant: this.own, name, speaks, reads });
    this.own = started.participant;
    this.others.clear();
    for (const other of started.participants) this.#add(other);
    return before.filter(({ participant }) => !this.others.has(participant));
  }
}
