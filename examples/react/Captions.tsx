// Live captions of a meeting in one language, as a React component:
//
//     npm install ./translation-gateway-client-1.0.0.tgz
//
//     <Captions gateway="https://gateway.example.com" meeting="standup" lang="ja" token={token} />
//
// `token`, for a gateway with keys, is a function that gets a token; it has to be the same one at every render
// (`useCallback`, or a function of the module), or the component joins again.

import { useEffect, useState } from "react";
import { GatewayClient } from "translation-gateway-client";
import type { Line, TokenSource } from "translation-gateway-client";

interface CaptionsProps {
  gateway: string;
  meeting: string;
  lang: string;
  token?: TokenSource;
  /** How many lines are shown. */
  most?: number;
}

/** A line that has changed takes its place, or comes last. */
function withLine(lines: Line[], line: Line, most: number): Line[] {
  if (line.gone) return lines.filter(({ key }) => key !== line.key);
  if (!lines.some(({ key }) => key === line.key)) return [...lines, line].slice(-most);
  return lines.map((each) => (each.key === line.key ? line : each));
}

export function Captions({ gateway, meeting, lang, token, most = 5 }: CaptionsProps) {
  const [lines, setLines] = useState<Line[]>([]);
  const [notice, setNotice] = useState("Connecting …");

  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const client = new GatewayClient(gateway, { meeting, reads: [lang], signal, ...(token && { token }) });
    client.on("state", ({ state, reason }) => setNotice(state === "open" ? "" : reason || "Connecting …"), { signal });
    const read = async () => {
      for await (const line of client.lines()) setLines((before) => withLine(before, line, most));
    };
    read().catch((error: Error) => setNotice(error.message));
    return () => {
      leaving.abort();
      setLines([]); // another meeting or language
    };
  }, [gateway, meeting, lang, token, most]);

  return (
    <section lang={lang} aria-live="polite">
      {lines.map(({ key, speaker, committed, tentative, failure }) => (
        <p key={key} dir="auto">
          {speaker && <b>{speaker}: </b>}
          {failure ? `(${failure})` : committed}
          <i>{tentative}</i>
        </p>
      ))}
      {notice && <p role="status">{notice}</p>}
    </section>
  );
}
