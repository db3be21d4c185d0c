// Has Lighthouse look at the page as a phone and as a laptop sees it: node lighthouse.mjs ADDRESS
// Fails below 100 for what is no matter of speed.
import * as chromeLauncher from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const chrome = await chromeLauncher.launch({
  chromePath: process.env.CHROME_PATH ?? "/usr/bin/chromium",
  chromeFlags: ["--headless=new", "--no-sandbox"],
});
let missed = 0;
for (const [screen, config] of [["phone"], ["laptop", desktopConfig]]) {
  const options = { port: chrome.port, logLevel: "error" };
  const { lhr } = await lighthouse(`${process.argv[2]}/?meeting=lighthouse`, options, config);
  const scores = Object.values(lhr.categories).map(({ title, score }) => [title, Math.round(100 * score)]);
  console.log(`${screen}: ${scores.map((score) => score.join(" ")).join(", ")}`);
  for (const { title, auditRefs } of Object.values(lhr.categories)) {
    for (const { id, weight } of auditRefs) {
      const { score, title: said } = lhr.audits[id];
      if (weight > 0 && score !== null && score < 1) console.log(`  ${title}: ${said} (${id}: ${score})`);
    }
  }
  missed += scores.filter(([title, score]) => title !== "Performance" && score < 100).length;
}
await chrome.kill();
process.exit(missed > 0 ? 1 : 0);
