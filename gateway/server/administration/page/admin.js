// Shows what the gateway is doing, and asks it to change that. Knows the administration's addresses.

const EVERY_MS = 5_000;
const KEY = "operators-key";

/** @typedef {{name: string, facts: string, actions: [string, () => Promise<unknown>][]}} Row */
/** @typedef {{tenant: string, meeting: string}} Named */

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
function find(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`The page has no #${id}.`);
  return found;
}

const status = find("status", HTMLElement);
const level = find("level", HTMLSelectElement);

let key = sessionStorage.getItem(KEY) ?? "";
/** @type {Named | null} The meeting whose people are shown. */
let shown = null;
let timer = 0;

class Refused extends Error {}

/**
 * @param {string} method
 * @param {string} path below /admin/
 * @param {unknown} [body]
 * @returns {Promise<any>} the answer; null if there is no such thing
 */
async function ask(method, path, body) {
  const response = await fetch(new URL(path, new URL("./", document.baseURI)), {
    method,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    cache: "no-store",
  });
  const answer = await response.json();
  if (response.status === 401) throw new Refused(answer.detail);
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(answer.detail);
  return answer;
}

/** @param {Named} meeting */
function path(meeting) {
  return `meetings/${encodeURIComponent(meeting.tenant)}/${encodeURIComponent(meeting.meeting)}`;
}

/**
 * Do something that cannot be undone, if the operator says so.
 * @param {string} question
 * @param {string} method
 * @param {string} where
 */
async function change(question, method, where) {
  if (!confirm(question)) return;
  if ((await ask(method, where)) === null) throw new Error("It is not there any more.");
}

/** @param {() => Promise<unknown>} work what to show afterwards, or why not */
async function trying(work) {
  try {
    await work();
    await show();
  } catch (error) {
    if (error instanceof Refused) leave(error.message);
    else
      tell(
        "bad",
        error instanceof TypeError
          ? "The gateway does not answer."
          : error instanceof Error
            ? error.message
            : String(error),
      );
  }
}

/**
 * @param {"good" | "bad"} state
 * @param {string} words
 */
function tell(state, words) {
  status.dataset.state = state;
  if (status.textContent !== words) status.textContent = words;
}

/**
 * Show rows in a list. A row that was there keeps its elements, so that nobody loses the button they are on.
 * @param {string} id
 * @param {Map<string, Row>} rows
 */
function list(id, rows) {
  const holder = find(id, HTMLElement);
  const old = new Map(Array.from(holder.children, (each) => [each.getAttribute("data-key"), each]));
  for (const [name, each] of old) if (name !== null && !rows.has(name)) each.remove();
  for (const [name, row] of rows) {
    let item = old.get(name);
    if (item === undefined) {
      item = element("li", "row");
      item.setAttribute("data-key", name);
      item.append(element("span", "row-name", row.name), element("span", "row-facts"), element("span", "row-actions"));
      for (const [words, act] of row.actions) {
        const button = element("button", "quiet", words);
        button.setAttribute("aria-label", `${words}: ${row.name}`);
        button.addEventListener("click", () => void trying(act));
        item.lastElementChild?.append(button);
      }
      holder.append(item);
    }
    const facts = item.children[1];
    if (facts !== undefined && facts.textContent !== row.facts) facts.textContent = row.facts;
  }
}

/**
 * @param {string} tag
 * @param {string} className
 * @param {string} [text]
 */
function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

async function show() {
  const [{ meetings }, { lanes }, { workers }, { webhooks }, log] = await Promise.all(
    ["meetings", "lanes", "workers", "webhooks", "log-level"].map((each) => ask("GET", each)),
  );
  find("meetings-count", HTMLElement).textContent = String(meetings.length);
  list("meetings", new Map(meetings.map((/** @type {any} */ each) => [path(each), meetingRow(each)])));
  list("lanes", new Map(lanes.map((/** @type {any} */ each) => [each.name, laneRow(each)])));
  list("workers", new Map(workers.map((/** @type {any} */ each) => [`${each.number} ${each.pid}`, workerRow(each)])));
  list("webhooks", new Map(webhooks.map((/** @type {any} */ each) => [each.name, webhookRow(each)])));
  if (document.activeElement !== level) level.value = log.level;
  await showPeople();
  find("enter", HTMLElement).hidden = true;
  find("all", HTMLElement).hidden = find("leave", HTMLElement).hidden = false;
  tell("good", "Live");
}

async function showPeople() {
  const sessions = shown === null ? [] : ((await ask("GET", path(shown)))?.sessions ?? []);
  find("people-card", HTMLElement).hidden = shown === null;
  if (shown === null) return;
  const meeting = shown;
  find("people-heading", HTMLElement).textContent = `People in ${meeting.meeting}`;
  list("people", new Map(sessions.map((/** @type {any} */ each) => [each.participant, personRow(meeting, each)])));
}

/** @param {any} each @returns {Row} */
function meetingRow(each) {
  const named = { tenant: each.tenant, meeting: each.meeting };
  const facts = [`${each.connected} connected`, `${each.away} away`, `${each.publications} kept`];
  if (each.newest_at !== null) facts.push(`newest ${time(each.newest_at)}`);
  return {
    name: each.tenant === "default" ? each.meeting : `${each.tenant} / ${each.meeting}`,
    facts: facts.join(" · "),
    actions: [
      [
        "People",
        async () => {
          await people(named);
        },
      ],
      ["End", () => change(`End ${each.meeting} for everybody?`, "DELETE", path(named))],
      ["Erase", () => change(`Erase what was said in ${each.meeting}?`, "DELETE", `${path(named)}/transcript`)],
    ],
  };
}

/** @param {Named} meeting */
async function people(meeting) {
  find("people", HTMLElement).replaceChildren();
  shown = meeting;
  await showPeople();
  find("people-heading", HTMLElement).focus();
}

/** @param {Named} meeting @param {any} each @returns {Row} */
function personRow(meeting, each) {
  const facts = [each.away ? "away" : "connected", `reads ${each.reads.join(", ") || "nothing"}`];
  if (each.speaks !== null) facts.push(`speaks ${each.speaks}`);
  if (each.sub !== null) facts.push(each.sub);
  const where = `${path(meeting)}/participants/${encodeURIComponent(each.participant)}`;
  const name = each.name || each.participant;
  return {
    name,
    facts: facts.join(" · "),
    actions: [["Disconnect", () => change(`Disconnect ${name}?`, "DELETE", where)]],
  };
}

/** @param {any} each @returns {Row} */
function laneRow(each) {
  const facts = [each.status, `${each.running} running`, `${each.waiting} waiting`, each.reason].filter(Boolean);
  const drain = () =>
    change(`Let ${each.name} finish what it has and go?`, "POST", `lanes/${encodeURIComponent(each.name)}/drain`);
  return { name: each.name, facts: facts.join(" · "), actions: each.name === "default" ? [] : [["Drain", drain]] };
}

/** @param {any} each @returns {Row} */
function workerRow(each) {
  const name = each.number === null ? `Process ${each.pid}` : `Worker ${each.number}, process ${each.pid}`;
  const facts = [each.status, `${each.running} running`, `${each.waiting} waiting`];
  const drain = () =>
    change(`Let another process take the place of worker ${each.number}?`, "POST", `workers/${each.number}/drain`);
  return { name, facts: facts.join(" · "), actions: each.number === null ? [] : [["Drain", drain]] };
}

/** @param {any} each @returns {Row} */
function webhookRow(each) {
  const facts = [each.host, `${each.waiting} waiting`];
  if (each.oldest_at !== null) facts.push(`oldest ${when(each.oldest_at)}`);
  if (each.tried_at !== null) facts.push(`last try ${when(each.tried_at)}: ${each.said}`);
  if (each.gone) facts.push("stopped, as it answered 410");
  return { name: each.name, facts: facts.join(" · "), actions: [] };
}

/** @param {string} at */
function time(at) {
  return new Date(at).toLocaleTimeString();
}

/** Of what may be from another day. @param {string} at */
function when(at) {
  return new Date(at).toLocaleString();
}

/** @param {string} why */
function leave(why) {
  key = "";
  shown = null;
  sessionStorage.removeItem(KEY);
  find("all", HTMLElement).hidden = find("leave", HTMLElement).hidden = true;
  find("enter", HTMLElement).hidden = false;
  find("refused", HTMLElement).textContent = why;
  tell("bad", "");
  status.removeAttribute("data-state");
}

find("enter", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  const given = find("key", HTMLInputElement);
  key = given.value.trim();
  sessionStorage.setItem(KEY, key);
  given.value = "";
  find("refused", HTMLElement).textContent = "";
  void trying(async () => {});
});
find("leave", HTMLButtonElement).addEventListener("click", () => leave(""));
level.addEventListener("change", () => void trying(() => ask("PUT", "log-level", { level: level.value })));

function again() {
  clearTimeout(timer);
  timer = window.setTimeout(again, EVERY_MS);
  if (key && !document.hidden) void trying(async () => {});
}

document.addEventListener("visibilitychange", again);
again();
