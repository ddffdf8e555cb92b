/**
 * @module
 * Everything that is measured, in the order of the table.
 */
import type { Variant } from './variant.ts';
import { cockatiel } from './variants/cockatiel.ts';
import { mollitia } from './variants/mollitia.ts';
import { opossum } from './variants/opossum.ts';
import { ours } from './variants/ours.ts';
import { telemetry } from './variants/telemetry.ts';

export const variants: readonly Variant[] = [
  ...ours,
  ...telemetry,
  ...cockatiel,
  ...opossum,
  ...mollitia,
];
