/**
 * @module
 * The shape of the texts that people and models read. Each language is one table.
 */

import type { FailureCode } from './failure-model.ts';

/** The languages that `describe` speaks. */
export type Language = 'en' | 'zh';

/** What is said about one code. */
export interface CodeText {
  /** What happened, as a sentence, when nothing more exact is known. */
  readonly what: string;
  /** What to do next. */
  readonly suggestion: string;
  /** What could serve instead. */
  readonly fallback?: string;
  /** Said about repeating in place of the general sentence, when the failure is not retryable. */
  readonly retry?: string;
}

/** One language. */
export interface Texts {
  /** Exhaustive: a new code does not compile until every language speaks of it. */
  readonly codes: Readonly<Record<FailureCode, CodeText>>;
  /** Wait, then repeat once. `seconds` is a positive whole number. */
  readonly retryAfter: (seconds: number) => string;
  /** Too long to wait for within a conversation. */
  readonly retryMuchLater: (seconds: number) => string;
  readonly retryNow: string;
  readonly retrySoon: string;
  /** It fails again, however often it is repeated. */
  readonly doNotRetry: string;
  /** It may pass, but not by repeating it now. */
  readonly doNotRetryNow: string;
  readonly notBefore: (seconds: number) => string;
  /** Before the exact English message, in languages other than English. */
  readonly details: (message: string) => string;
}
