// The cover: what stands before a meeting and after it, like that of a programme. Must not know what is in it.

import { element } from "./dom.js";

/** @param {...Node} content From its foot upwards, the last one lowest. */
export function cover(...content) {
  const made = element("div", "cover");
  const mark = element("img", "cover-mark");
  mark.src = document.querySelector("link[rel=icon]")?.getAttribute("href") ?? "";
  mark.alt = "";
  const words = element("div", "cover-words");
  words.append(...content);
  made.append(mark, words);
  return made;
}
