// Has Firefox and WebKit open the page, at each size of screen: node browsers.mjs ADDRESS FOLDER
// Fails for what sticks out, does not line up or is cut off, for what they say on their consoles, and for recordings of
// recognisers that the client's library repairs otherwise there. Pictures go to FOLDER, to be looked at.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pass } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [address, folder] = process.argv.slice(2);
const { said } = await import(pathToFileURL(resolve("tests/web_client/recordings.js")));

const SIZES = [
  [360, 740],
  [390, 844],
  [844, 390],
  [1280, 860],
  [1920, 1080],
];
const SENTENCES = [
  "Let's move the launch to Friday, when everybody is back.",
  "Who is going to tell the customers?",
  "I will write to them this afternoon, and call those who have not answered by Thursday.",
];
const PATIENCE_MS = 60_000;

// -- Browsers -------------------------------------------------------------------------------------------------

class Firefox {
  name = "firefox";
  complaints = [];

  async open() {
    const executablePath = process.env.FIREFOX_PATH ?? "/usr/bin/firefox-esr";
    this.browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true });
    this.version = await this.browser.version();
    [this.page] = await this.browser.pages();
    this.page.on("console", (said) => {
      if (["error", "warn"].includes(said.type())) this.complaints.push(said.text());
    });
    this.page.on("pageerror", (error) => this.complaints.push(String(error)));
  }

  size = (width, height) => this.page.setViewport({ width, height });
  go = (path) => this.page.goto(address + path);
  run = (task, ...values) => this.page.evaluate(task, ...values);
  click = (selector) => this.page.locator(selector).click();
  write = (selector, text) => this.page.type(selector, text);
  picture = (path) => this.page.screenshot({ path });
  close = () => this.browser?.close();
}

/** WebKitGTK, which WebDriver drives on a screen that nobody sees. */
class WebKit {
  name = "webkit";
  complaints = [];
  #processes = [];

  async open() {
    const screen = this.#start("Xvfb", ["-displayfd", "1", "-screen", "0", "2200x1400x24", "-nolisten", "tcp"]);
    const [display] = await once(screen);
    const port = await freePort();
    this.#start("WebKitWebDriver", [`--port=${port}`], { DISPLAY: `:${display}`, NO_AT_BRIDGE: "1" });
    this.url = `http://127.0.0.1:${port}/session`;
    for (const began = Date.now(); Date.now() - began < PATIENCE_MS; await pass(100))
      if (await fetch(`http://127.0.0.1:${port}/status`).catch(() => null)) break;
    const args = ["--automation", "--javascript-can-open-windows-automatically=true"];
    const alwaysMatch = {
      "webkitgtk:browserOptions": { binary: process.env.MINIBROWSER_PATH ?? MINIBROWSER, args },
    };
    const { sessionId, capabilities } = await this.#ask("POST", "", { capabilities: { alwaysMatch } });
    this.url += `/${sessionId}`;
    this.version = `${capabilities.browserName} ${capabilities.browserVersion}`;
    await this.#ask("POST", "/timeouts", { script: PATIENCE_MS });
    // A window with an address bar is never as narrow as a phone.
    const wide = await this.#ask("GET", "/window");
    await this.run(() => void open("about:blank", "", "popup,width=400,height=400"));
    let handle;
    while (!(handle = (await this.#ask("GET", "/window/handles")).find((each) => each !== wide))) await pass(100);
    await this.#ask("POST", "/window", { handle });
  }

  async size(width, height) {
    await this.#ask("POST", "/window/rect", { width, height });
    await pass(300);
    const got = await this.run(() => [innerWidth, innerHeight]);
    if (`${got}` !== `${[width, height]}`) throw new Error(`the window has ${got}, not ${width},${height}`);
  }

  /** Its driver tells nothing of the console, so the page is asked, once it is there. */
  async go(path) {
    await this.listen();
    await this.#ask("POST", "/url", { url: address + path });
    await this.run(() => {
      const said = (window.complaints = []);
      for (const kind of ["error", "warn"]) console[kind] = (...words) => said.push(words.join(" "));
      for (const kind of ["error", "unhandledrejection", "securitypolicyviolation"])
        addEventListener(kind, ({ message, reason, blockedURI }) =>
          said.push(`${kind} ${message ?? reason ?? blockedURI}`),
        );
    });
  }

  async listen() {
    this.complaints.push(...(await this.run(() => window.complaints?.splice(0) ?? [])));
  }

  async run(task, ...values) {
    const script = `const [task, done] = [(${task}), arguments[1]];
      Promise.resolve(arguments[0]).then((values) => task(...values)).then((value) => done({ value }), (error) => done({ error: String(error) }));`;
    const { value, error } = await this.#ask("POST", "/execute/async", { script, args: [values] });
    if (error) throw new Error(error);
    return value;
  }

  click = async (selector) => this.#ask("POST", `/element/${await this.#find(selector)}/click`, {});
  write = async (selector, text) => this.#ask("POST", `/element/${await this.#find(selector)}/value`, { text });
  picture = async (path) => writeFileSync(path, Buffer.from(await this.#ask("GET", "/screenshot"), "base64"));

  async close() {
    await this.#ask("DELETE", "").catch(() => {});
    for (const each of this.#processes.reverse()) each.kill();
  }

  async #find(selector) {
    return Object.values(await this.#ask("POST", "/element", { using: "css selector", value: selector }))[0];
  }

  async #ask(method, path, body) {
    const answer = await fetch(this.url + path, { method, body: body && JSON.stringify(body) });
    const { value } = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`);
    return value;
  }

  #start(command, args, env = {}) {
    const started = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    this.#processes.push(started);
    return started;
  }
}

const MINIBROWSER = "/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser";

const freePort = () =>
  new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });

const once = async ({ stdout }) => {
  for await (const line of createInterface(stdout)) return [line];
  throw new Error("nothing was said");
};

// -- On the page ----------------------------------------------------------------------------------------------

/** What is wrong with what the page shows, in words. */
function faults() {
  const found = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.push(`it scrolls sideways by ${scrollWidth - clientWidth} px`);
  const isSeen = (element) => {
    const { width, height, top, bottom } = element.getBoundingClientRect();
    const options = { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true };
    return width > 1 && height > 1 && bottom > 0 && top < innerHeight && element.checkVisibility(options);
  };
  const named = (element) => `<${element.localName} class="${element.className}"> ${element.textContent.slice(0, 40)}`;
  for (const element of document.querySelectorAll("body *")) {
    const { left, right } = element.getBoundingClientRect();
    if ((left >= -1 && right <= innerWidth + 1) || !isSeen(element)) continue;
    let around = element;
    while ((around = around.parentElement) && getComputedStyle(around).overflowX === "visible");
    if (!around) found.push(`${named(element)} sticks out: ${left} to ${right}`);
  }
  for (const element of document.querySelectorAll("button, summary, .chip, h1, h2, .heading, .wall-head")) {
    const isShort = getComputedStyle(element).textOverflow === "ellipsis";
    if (!isShort && isSeen(element) && element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1)
      found.push(`${named(element)} is cut off: ${element.scrollWidth} in ${element.clientWidth} px`);
  }
  const [scroller, above] = ["transcript", "top-speaker"].map((id) => document.querySelector(`[data-testid="${id}"]`));
  if (scroller?.scrollTop === 0 && !above.hidden) found.push("the name above the first row stands there twice");
  for (const head of document.querySelectorAll(".utterance:not(.follows) > .row-head"))
    if (isSeen(head.parentElement) && head.offsetHeight === 0) found.push(`${named(head)} has no size`);
  const table = document.querySelector('[data-layout="table"]');
  const headings = [...(table?.querySelectorAll(".heading") ?? [])].map((each) => each.getBoundingClientRect().left);
  for (const row of table?.querySelectorAll('[data-testid="utterance"]') ?? []) {
    const texts = [...row.querySelectorAll(".cell:not(.original) > .cell-text")];
    if (!isSeen(row) || texts.length < 2) continue;
    // An empty box in a line stands on its baseline.
    const lines = texts.map((text) => {
      const box = document.createElement("span");
      box.style.display = "inline-block";
      text.prepend(box);
      const { bottom } = box.getBoundingClientRect();
      box.remove();
      return [text.parentElement.getBoundingClientRect().left, bottom];
    });
    lines.forEach(([left, bottom], place) => {
      if (Math.abs(left - headings[place]) > 1) found.push(`column ${place}: ${left} below ${headings[place]}`);
      if (Math.abs(bottom - lines[0][1]) > 1) found.push(`${named(row)}: baselines ${lines[0][1]} and ${bottom}`);
    });
  }
  return found;
}

/** Speak in a meeting from a page that only shows it. */
async function speak(meeting, sentences) {
  const { GatewayClient } = await import("/client.js");
  const client = new GatewayClient(location.origin, { meeting, name: "Ana", speaks: "en" });
  client.connect();
  for (const text of sentences) client.final({ text });
  client.partial({ text: "And then we" });
  window.speaker = client;
}

/** Which recordings are repaired otherwise. The page's policy forbids `eval`, so `said` is part of it. */
const recordings = new Function(
  "forms",
  `const said = ${said};
  return import("/client/recognisers/recogniser.js").then(({ Recogniser }) =>
    Object.keys(forms).filter((name) => {
      const expected = forms[name].map(([, expected]) => expected);
      return JSON.stringify(said(Recogniser, forms[name])) !== JSON.stringify(expected);
    }));`,
);

// -- What is done -----------------------------------------------------------------------------------------------

/** How many faults there are. */
async function visit(browser) {
  let found = 0;
  let pictures = 0;
  const fault = (words) => (found++, console.log(`  ${browser.name}: ${words}`));
  const until = async (task, ...values) => {
    for (const began = Date.now(); Date.now() - began < PATIENCE_MS; await pass(100))
      if (await browser.run(task, ...values)) return;
    throw new Error(`${task} never came true`);
  };
  const look = async (name, sizes = SIZES) => {
    for (const [width, height] of sizes) {
      await browser.size(width, height);
      await browser.run(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      for (const each of await browser.run(faults)) fault(`${name} at ${width} × ${height}: ${each}`);
      await browser.picture(`${folder}/${browser.name}-${name}-${width}.png`);
      pictures++;
    }
  };
  const prefer = (preferences) => browser.run((all) => void Object.assign(localStorage, all), preferences);
  const isConnected = () => document.querySelector("#status")?.dataset.state === "good";
  const meeting = `${browser.name}-${Date.now()}`;

  await browser.size(360, 740);
  await browser.go(`/?meeting=${meeting}`);
  await until(() => document.querySelector('[data-testid="join"][open]') !== null);
  await look("join");
  await browser.write('[data-testid="join"] input[autocomplete="name"]', "Ben");
  await browser.click('[data-testid="join-speak"]');
  await browser.click('[data-testid="join"] button');
  await until(isConnected);
  await look("silent");
  await prefer({ reads: "en,ja,de" });
  await browser.go(`/?meeting=${meeting}`);
  await until(isConnected);
  for (const [place, text] of SENTENCES.entries()) {
    await browser.write('[data-testid="text"]', text);
    await browser.click('[data-testid="send"]');
    const isSaid = (rows) =>
      document.querySelectorAll('[data-testid="utterance"][data-state="settled"]').length === rows;
    await until(isSaid, place + 1);
  }
  await look("options");
  await browser.click('[data-testid="close-panel"]');
  await look("read");
  await browser.click('[data-testid="microphone"]');
  await pass(1_000);
  await look("microphone", SIZES.slice(0, 1));
  for (const [name, preferences] of Object.entries({
    dark: { theme: "dark" },
    arabic: { theme: "auto", "page-language": "ar" },
  })) {
    await prefer(preferences);
    await browser.go(`/?meeting=${meeting}`);
    await until(isConnected);
    await look(name);
  }
  await prefer({ "page-language": "en" });

  await browser.run(() => sessionStorage.clear());
  await browser.go("/");
  await until(() => document.querySelector('[data-testid="sample"]') !== null);
  await until(isConnected);
  await look("host");
  await browser.click('[data-testid="sample"]');
  await until(() => document.querySelectorAll('[data-testid="utterance"]').length >= 4);
  await look("sample");

  for (const [name, view] of Object.entries({ wall: "reading", overlay: "captions" })) {
    await browser.go(`/?view=${view}&meeting=${meeting}&lang=ja,en`);
    await until(() => document.querySelector('[data-testid="captions"]')?.dataset.state === "open");
    await browser.run(speak, meeting, SENTENCES);
    await until(() => document.body.innerText.includes("And then we"));
    await look(name);
  }

  let played = 0;
  for (const form of ["lines", "states", "browser"]) {
    const forms = JSON.parse(readFileSync(`tests/recordings/${form}.json`, "utf8"));
    for (const name of await browser.run(recordings, forms)) fault(`recording ${form}: ${name}`);
    played += Object.keys(forms).length;
  }
  await browser.listen?.();
  // An event of WebKit's that is on nobody's console: what was observed is looked at again in the next frame.
  const complaints = browser.complaints.filter((each) => !each.includes("ResizeObserver loop completed"));
  for (const complaint of complaints) fault(complaint);
  console.log(`${browser.name}: ${browser.version}, ${pictures} pictures, ${played} recordings, ${found} faults`);
  return found;
}

let failed = 0;
mkdirSync(folder, { recursive: true });
const wanted = process.argv[4];
for (const browser of [new Firefox(), new WebKit()].filter(({ name }) => !wanted || name === wanted)) {
  try {
    await browser.open();
    failed += await visit(browser);
  } catch (error) {
    failed++;
    console.log(`${browser.name}: ${error.stack}`, browser.complaints);
  } finally {
    await browser.close();
  }
}
process.exit(failed > 0 ? 1 : 0);
