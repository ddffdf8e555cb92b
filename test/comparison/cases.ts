/**
 * @module
 * Faults that users of other systems reported or that were found in current releases, as small
 * inputs. Each is written once; every library gets the same one.
 */
import { breakerCases } from './cases/breaker.ts';
import { limitCases } from './cases/limits.ts';
import { retryCases } from './cases/retry.ts';
import type { Case } from './lab.ts';

const order = ({ id }: Case): number => (id.startsWith('M') ? 100 : 0) + Number(id.slice(1));

export const cases: readonly Case[] = [...breakerCases, ...retryCases, ...limitCases].sort(
  (a, b) => order(a) - order(b),
);
