/**
 * @module
 * Failures as text that a model can act on: what happened, whether and when to repeat, what
 * to do instead.
 */

import { isFailureCode } from './failure-codes.ts';
import type { Failure } from './failure-model.ts';
import type { CodeText, Language, Texts } from './texts.ts';
import { english } from './texts-en.ts';
import { chinese } from './texts-zh.ts';

const languages: Readonly<Record<Language, Texts>> = { en: english, zh: chinese };

/** Seconds beyond which a model is told to go on without the tool instead of waiting. */
const LONG_WAIT = 600;

let environmentLanguage: Language | undefined;

/** `MCP_RESILIENCE_LANG`, read once and not before it is needed; `en` for anything unknown. */
const defaultLanguage = (): Language => {
  environmentLanguage ??=
    process.env.MCP_RESILIENCE_LANG?.trim().toLowerCase() === 'zh' ? 'zh' : 'en';
  return environmentLanguage;
};

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** Whole seconds to wait, rounded up so that nobody comes back too early. */
const waitOf = (failure: Failure): number | undefined =>
  failure.retryAfter !== undefined && Number.isFinite(failure.retryAfter)
    ? Math.max(0, Math.ceil(failure.retryAfter))
    : undefined;

const retryLine = (failure: Failure, texts: Texts, own: CodeText | undefined): string => {
  const wait = waitOf(failure);
  // Whatever a policy says of it, an unknown outcome is verified before anything else.
  if (failure.retryable && failure.code !== 'OUTCOME_UNKNOWN') {
    if (wait === undefined) return texts.retrySoon;
    if (wait === 0) return texts.retryNow;
    return wait > LONG_WAIT ? texts.retryMuchLater(wait) : texts.retryAfter(wait);
  }
  const general = failure.severity === 'permanent' ? texts.doNotRetry : texts.doNotRetryNow;
  const line = own?.retry ?? general;
  return wait === undefined || wait === 0 ? line : `${line} ${texts.notBefore(wait)}`;
};

/** A text of the failure's own, unless it is the English default that the table translates. */
const choose = (
  given: string | undefined,
  usual: string | undefined,
  local: string | undefined,
): string | undefined => (given === undefined || given === usual ? local : given);

/**
 * How `describe` speaks.
 *
 * @example
 * ```ts
 * import { createFailure, type DescribeOptions, describe } from 'mcp-resilience';
 * const options: DescribeOptions = { lang: 'zh' };
 * describe(createFailure('UPSTREAM_UNAVAILABLE'), options);
 * ```
 */
export interface DescribeOptions {
  /** Default: what `MCP_RESILIENCE_LANG` says, otherwise `en`. */
  readonly lang?: Language | undefined;
}

/**
 * The failure as text for a model. The first line is `[CODE] what happened`; then follow
 * whether and after how many seconds to repeat, what to do, and what could serve instead.
 *
 * In Chinese the exact message, which is English, follows as a detail. A code that a user's
 * classifier has added speaks with the failure's own texts in every language.
 *
 * @example
 * ```ts
 * import { classify, describe } from 'mcp-resilience';
 * describe(classify(new Response(null, { status: 429, headers: { 'retry-after': '7' } })));
 * // [RATE_LIMITED] The upstream answered HTTP 429.
 * // Wait at least 7 seconds, then retry once.
 * // Make fewer calls: combine them, or ask only for what is needed.
 * // Go on with the parts of the task that do not need this tool.
 * ```
 */
export const describe = (failure: Failure, options: DescribeOptions = {}): string => {
  const lang = options.lang ?? defaultLanguage();
  const texts = Object.hasOwn(languages, lang) ? languages[lang] : english;
  const known = isFailureCode(failure.code) ? failure.code : undefined;
  const own = known === undefined ? undefined : texts.codes[known];
  const usual = known === undefined ? undefined : english.codes[known];
  const message = oneLine(failure.message);
  const exact = message !== '' && message !== usual?.what;

  const lines: (string | undefined)[] = [];
  if (own === undefined || (exact && texts === english)) lines.push(`[${failure.code}] ${message}`);
  else lines.push(`[${failure.code}] ${own.what}`, exact ? texts.details(message) : undefined);
  lines.push(
    retryLine(failure, texts, own),
    choose(failure.suggestion, usual?.suggestion, own?.suggestion),
    choose(failure.fallbackHint, usual?.fallback, own?.fallback),
  );
  return lines.filter((line) => line !== undefined && line !== '').join('\n');
};
