/**
 * @module
 * What is said in English.
 */

import type { Texts } from './texts.ts';
import { codes } from './texts-en-codes.ts';

const count = (seconds: number): string => `${seconds} second${seconds === 1 ? '' : 's'}`;

/** English. */
export const english: Texts = {
  codes: {
    ...codes,
    REQUEST_REJECTED: {
      ...codes.REQUEST_REJECTED,
      retry: 'Do not repeat the same request: it will be rejected again.',
    },
    TOOL_ERROR: {
      ...codes.TOOL_ERROR,
      retry: 'Do not repeat the same call with the same arguments: the tool works, but said no.',
    },
    OUTCOME_UNKNOWN: {
      ...codes.OUTCOME_UNKNOWN,
      retry: 'The operation may have been executed. Verify first, before you repeat it.',
    },
    CANCELLED: {
      ...codes.CANCELLED,
      retry: 'Do not retry it on your own: somebody wanted it to stop.',
    },
    INVALID_INPUT: {
      ...codes.INVALID_INPUT,
      retry: 'Do not repeat the same arguments: correct the named fields, then call again.',
    },
  },
  retryAfter: (seconds) => `Wait at least ${count(seconds)}, then retry once.`,
  retryMuchLater: (seconds) =>
    `A retry makes sense only after ${count(seconds)}. That is too long to wait for: tell the user, and go on without it.`,
  retryNow: 'You may retry once now.',
  retrySoon: 'It may pass by itself: wait a few seconds, then retry once.',
  doNotRetry: 'Do not retry the same request: it will fail again.',
  doNotRetryNow: 'Do not retry it right away.',
  notBefore: (seconds) => `In any case not before ${count(seconds)} have passed.`,
  details: (message) => message,
};
