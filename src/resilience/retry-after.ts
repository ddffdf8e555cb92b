/**
 * @module
 * The Retry-After field of HTTP (RFC 9110 section 10.2.3).
 */

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

/** IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. */
const IMF = /^[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$/;
/** RFC 850, obsolete: `Sunday, 06-Nov-94 08:49:37 GMT`. */
const RFC850 = /^[A-Z][a-z]{5,8}, (\d\d)-([A-Z][a-z]{2})-(\d\d) (\d\d):(\d\d):(\d\d) GMT$/;
/** asctime, obsolete: `Sun Nov  6 08:49:37 1994`, which is UTC. */
const ASCTIME = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})$/;

const SECONDS = /^\d+(?:\.\d+)?$/;

/** A year of two digits more than 50 years ahead is one of the past (RFC 9110 5.6.7). */
const fullYear = (digits: number, now: number): number => {
  const current = new Date(now).getUTCFullYear();
  const year = current - (current % 100) + digits;
  return year > current + 50 ? year - 100 : year;
};

/**
 * Milliseconds since the epoch of an HTTP-date in any of the three forms that a recipient
 * must accept (RFC 9110 section 5.6.7), or undefined. `Date.parse` is not used, for it takes
 * garbage such as `-5` for a date and reads asctime as local time.
 */
const parseHttpDate = (text: string, now: number): number | undefined => {
  let parts: [year: number, month: string, rest: (string | undefined)[]] | undefined;
  const imf = IMF.exec(text);
  const rfc850 = RFC850.exec(text);
  const asctime = ASCTIME.exec(text);
  if (imf) parts = [Number(imf[3]), imf[2] ?? '', [imf[1], imf[4], imf[5], imf[6]]];
  else if (rfc850) {
    const year = fullYear(Number(rfc850[3]), now);
    parts = [year, rfc850[2] ?? '', [rfc850[1], rfc850[4], rfc850[5], rfc850[6]]];
  } else if (asctime) {
    parts = [Number(asctime[6]), asctime[1] ?? '', asctime.slice(2, 6)];
  }
  if (parts === undefined) return undefined;
  const month = MONTHS.indexOf(parts[1]);
  const [day, hour, minute, second] = parts[2].map(Number);
  if (month < 0) return undefined;
  return Date.UTC(parts[0], month, day, hour, minute, second);
};

/**
 * Seconds to wait, 0 or more, or undefined for a value that is neither a number of seconds
 * nor an HTTP-date. A date in the past is 0. Fractions of seconds, which the grammar does not
 * know, are accepted, since servers send them. Nothing is capped here: how long is too long
 * is for the retry policy to say.
 *
 * @param now milliseconds since the epoch, to count from when the value is a date
 */
export const parseRetryAfter = (value: string, now: number): number | undefined => {
  const text = value.trim();
  if (SECONDS.test(text)) return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
  if (!Number.isFinite(now)) return undefined;
  const at = parseHttpDate(text, now);
  return at === undefined || Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1_000);
};
