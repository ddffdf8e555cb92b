/**
 * @module
 * Takes secrets out of text that others wrote: error messages, log lines, recorded arguments.
 */

const MARK = '***';

/** The rest of a URL after `://`: userinfo, host, path, query, up to a space or a quote. */
const AFTER_SCHEME = /:\/\/([^\s"<>`]+)/g;

/** A query without a scheme before it: `GET /v1/items?key=abc`. */
const BARE_QUERY = /\?[\w.~%[\]-]{1,64}=[^\s"'<>`]*/g;

/** Cookies hold several pairs, so that the rest of the line goes. */
const COOKIE = /\b((?:set-)?cookie\s*[:=]\s*)(?=[^\s"'\\])[^\r\n]+/gi;

/** `name: value` and `name=value`, in JSON, headers, environments and connection strings. */
const NAMED =
  /((?:api[-_ ]?key|access[-_]?key|account[-_]?key|private[-_]?key|token|secret|passw(?:or)?d|pwd|passphrase|authorization|credentials?|session[-_]?id|signature|cookie)(?:\\?["'])?\s*[:=]\s*)((?:(?:bearer|basic|digest|token)\s+)?(?:\\"(?:[^"\\]|\\(?!"))*(?:\\")?|"(?:[^"\\]|\\[\s\S])*"?|'[^']*'?|[^\s"',;&}\])]+))/gi;

/** `--token abc` of a command line. */
const OPTION = /(--(?:[a-z]{1,20}-){0,3}(?:key|token|secret|password|passwd)\s+)[^\s"'-][^\s"']*/gi;

/** `Bearer abc` and `Basic abc`, but not "Bearer token" or "Basic authentication". */
const SCHEME = /\b(bearer|basic)(\s+)(?:(?=[a-z._~+/-]{0,64}\d)[\w.~+/-]{6,}|[\w.~+/-]{20,})=*/gi;

/** Credentials that show what they are by their first letters. */
const TYPED =
  /(?<![A-Za-z0-9_-])(?:eyJ[\w-]{8,}(?:\.[\w-]*){1,4}|(?:sk|pk|rk)[-_][\w-]{12,}|gh[opusr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{12,}|xox[abeoprs]-[\w-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|ya29\.[\w-]{10,}|(?:npm|hf|shpat|dop_v1|pypi)[-_]\w{16,}|SG\.[\w-]{10,}\.[\w-]{10,})/g;

const PRIVATE_KEY =
  /-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|$)/g;

/** Userinfo and query of one URL. What follows its end, such as `)` or `.`, stays. */
const url = (_: string, rest: string): string => {
  const end = rest.search(/[/?#\\]/);
  const authority = end < 0 ? rest : rest.slice(0, end);
  // A password may hold a raw slash (`user:pa/ss@host`): then what looks like a port is none.
  const odd = end >= 0 && !authority.includes('@') && /:(?!\d{1,5}$)/.test(authority);
  const at = odd && !authority.startsWith('[') ? rest.lastIndexOf('@') : authority.lastIndexOf('@');
  const shown = at < 0 ? rest : `${MARK}@${rest.slice(at + 1)}`;
  const query = shown.search(/[?#]/);
  if (query < 0) return `://${shown}`;
  const tail = /[)\]}'.,;:!]{0,4}$/.exec(shown)?.[0] ?? '';
  return `://${shown.slice(0, query + 1)}${MARK}${tail}`;
};

const quoted = (_: string, name: string, value: string): string => {
  const quote = /^(?:\\?"|')/.exec(value)?.[0] ?? '';
  return `${name}${quote}${MARK}${quote}`;
};

const once = (text: string): string =>
  text
    .replace(PRIVATE_KEY, MARK)
    .replace(AFTER_SCHEME, url)
    .replace(BARE_QUERY, `?${MARK}`)
    .replace(COOKIE, `$1${MARK}`)
    .replace(NAMED, quoted)
    .replace(OPTION, `$1${MARK}`)
    .replace(SCHEME, `$1$2${MARK}`)
    .replace(TYPED, MARK);

/**
 * `text` without what looks like a secret: userinfo, query and fragment of URLs, cookies,
 * values named like a credential (`api_key=…`, `"password": "…"`, `--token …`), bearer and
 * basic credentials, JWTs, private keys, and the typed keys of common services. Each is
 * replaced by `***`. Masks by shape only: a secret that looks like a word is not recognised.
 *
 * Redacting twice changes nothing. Takes time linear in the length of the text.
 *
 * @example
 * ```ts
 * import { redact } from 'mcp-resilience';
 * redact('GET https://me:pw@api.example/v1?key=1 failed'); // 'GET https://***@api.example/v1?*** failed'
 * ```
 */
export const redact = (text: string): string => {
  // One mark may complete the shape of another, so that it is repeated until nothing changes.
  for (let round = 0; round < 4; round += 1) {
    const next = once(text);
    if (next === text) break;
    text = next;
  }
  return text;
};
