// What is to be said of a recording of tests/recordings/, for Node and for browsers.

/** What is to be said after each step. Needs nothing from around it: browsers get it as text. */
export function said(Recogniser, steps) {
  const recogniser = new Recogniser();
  const heard = (result) => {
    if (result.rest) return recogniser.rest();
    if (result.restarted === undefined) return recogniser.hear(result);
    recogniser.restarted(result.restarted ?? undefined);
    return [];
  };
  // As it stands in a recording: without times that are not known at its end.
  const short = ({ kind, id, text, start_ms = null, end_ms = null }) => {
    const values = [kind, id, text, start_ms, end_ms];
    while (values.at(-1) === null) values.pop();
    return values;
  };
  return steps.map(([result]) => heard(result).map(short));
}
