// A link as a QR code that fills the screen, so that people scan it from the last row. Must not know what the link leads to.

import { button, element } from "../ui/dom.js";
import { t } from "../words/words.js";
import { QrCode } from "./qr_code.js";

/**
 * @param {string} link
 * @param {string} [title] What it leads to, for people.
 */
export async function fillScreen(link, title = "") {
  const dialog = element("dialog", "qr-screen");
  dialog.ariaLabel = t("share.qr");
  dialog.dataset.testid = "qr-screen";
  const ground = element("div", "qr-ground");
  const qr = new QrCode(t("share.qr"));
  const text = element("p", "qr-link");
  const address = element("bdi", "", withoutFragment(link));
  address.dir = "ltr";
  text.append(...(title ? [element("bdi", "qr-title", title)] : []), address);
  ground.append(
    button("quiet", t("page.close"), "qr-close", () => dialog.close()),
    qr.element,
    text,
  );
  dialog.append(ground);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (document.fullscreenElement !== null) void document.exitFullscreen();
  });
  ground.addEventListener("fullscreenchange", () => document.fullscreenElement === null && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  await qr.show(link);
  // A dialog itself cannot be shown so. Where the browser does not allow it, the code fills the window.
  await ground.requestFullscreen?.().catch(() => undefined);
}

/** An invite is a secret that nobody types. @param {string} link */
function withoutFragment(link) {
  return link.includes("#") ? "" : link;
}
