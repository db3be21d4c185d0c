// Keeps a reader's screen awake, as long as the page is seen. Knows the browser's wake lock; must not know why.

let wanted = false;

async function request() {
  if (!wanted || document.visibilityState !== "visible") return;
  try {
    await navigator.wakeLock?.request("screen");
  } catch {
    // Not below this address, or not with this battery.
  }
}

/** From now on; the browser gives it up whenever the page is hidden. */
export function stayAwake() {
  if (wanted) return;
  wanted = true;
  document.addEventListener("visibilitychange", () => void request());
  void request();
}
