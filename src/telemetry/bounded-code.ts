/**
 * @module
 * Failure codes as metrics may carry them. Those of a classifier, or of an upstream that tells its
 * own, are not bounded, and each would be a series for ever.
 */
import { VALUE_OTHER } from './semconv.ts';

/** Codes kept apart. */
const MAX_CODES = 100;
const codes = new Set<string>();

/** The code itself; `_other` beyond the first hundred, and for one that is too long. */
export const boundedCode = (code: string): string => {
  if (codes.has(code)) return code;
  if (codes.size >= MAX_CODES || code.length > 64) return VALUE_OTHER;
  codes.add(code);
  return code;
};
