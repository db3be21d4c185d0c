// Live captions of a meeting in one language, as a React component:
//
//     <Captions gateway="https://gateway.example.com" meeting="standup" lang="ja" token={token} />
//
// `token`, for a gateway with keys, is a function that gets a token; it has to be the same one at every render
// (`useCallback`, or a function of the module), or the component joins again.

import { useEffect, useReducer } from "react";
import { GatewayClient } from "translation-gateway-client";

// How many captions are kept, however many are shown.
const MOST = 100;
const NOTHING = { captions: [], state: "closed", reason: "" };

/** How captions follow from the client's events. */
function reduce({ captions, state, reason }, event) {
  const key = `${event.participant}/${event.utterance}`;
  const before = captions.find((caption) => caption.key === key) ?? { key, committed: "", tentative: "" };
  const change = (caption) => {
    const after = { ...before, ...caption };
    const isNew = !captions.some((each) => each.key === key);
    const changed = isNew ? [...captions, after] : captions.map((each) => (each.key === key ? after : each));
    return { state, reason, captions: changed.slice(-MOST) };
  };
  switch (event.type) {
    case "joining": // another meeting or language
      return NOTHING;
    case "state":
      return { captions, state: event.state, reason: event.reason };
    case "session.started": // unfinished translations come again from their beginning
      return { state, reason, captions: captions.filter((caption) => caption.final) };
    case "caption": // whoever speaks the language that is read is not translated
      return change({ speaker: event.speaker, committed: event.text, tentative: "", final: event.final });
    case "translation.delta":
      return change({ committed: before.committed + event.committed, tentative: event.tentative });
    case "translation.final":
      return change({ speaker: event.speaker, committed: event.text, tentative: "", final: true });
    case "translation.failed":
      return change({ speaker: event.speaker, committed: `(${event.message})`, tentative: "", final: true });
    case "utterance.cancelled":
      return { state, reason, captions: captions.filter((caption) => caption.key !== key) };
    case "participant.left":
      return {
        state,
        reason,
        captions: captions.filter(({ key, final }) => final || !key.startsWith(`${event.participant}/`)),
      };
    default:
      return { captions, state, reason };
  }
}

export function Captions({ gateway, meeting, lang, token, lines = 5 }) {
  const [{ captions, state, reason }, dispatch] = useReducer(reduce, NOTHING);

  useEffect(() => {
    dispatch({ type: "joining" });
    const client = new GatewayClient(gateway, { meeting, reads: [lang], ...(token && { token }) });
    const stop = client.listen(dispatch);
    client.connect();
    return () => {
      stop();
      client.close();
    };
  }, [gateway, meeting, lang, token]);

  return (
    <section lang={lang} aria-live="polite">
      {captions.slice(-lines).map(({ key, speaker, committed, tentative }) => (
        <p key={key} dir="auto">
          {speaker && <b>{speaker}: </b>}
          {committed}
          <i>{tentative}</i>
        </p>
      ))}
      {state !== "open" && <p role="status">{reason || "Connecting …"}</p>}
    </section>
  );
}
