// On a phone on its side the controls are away until its user touches the text: landscape.css says where that is so. Must
// not know the controls.

/** @param {HTMLElement} text What to touch. */
export function showControlsOnTouch(text) {
  text.addEventListener("click", ({ target }) => {
    const isControl = target instanceof Element && target.closest("button, a, input, select, label") !== null;
    // The click that ends a selection belongs to it.
    if (isControl || getSelection()?.isCollapsed === false) return;
    const { dataset } = document.documentElement;
    if (dataset["controls"] === "shown") delete dataset["controls"];
    else dataset["controls"] = "shown";
  });
}
