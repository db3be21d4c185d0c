// One quiet line: which model answers and, while it is the demo's own, how to have a real one. Must not know who asks
// the gateway.

import { element } from "../ui/dom.js";
import { t } from "../words/words.js";

/** With a model that most computers have room for. */
const NEXT_COMMAND = "make demo MODEL=tencent/HY-MT1.5-1.8B";

/**
 * @param {{model: string, family: string}} gateway
 * @param {boolean} isForOperator Whether the reader may have started the gateway.
 */
export function modelLine({ model, family }, isForOperator) {
  const isDemo = family === "bundled";
  const line = element("p", "hint model-line", isDemo ? t("model.demo") : t("model.named", { model }));
  line.dataset.testid = "model";
  if (isDemo && isForOperator) {
    const command = element("code", "", NEXT_COMMAND);
    command.dir = "ltr";
    const next = element("span", "model-next", t("model.next"));
    next.append(" ", command);
    line.append(" ", next);
  }
  return line;
}
