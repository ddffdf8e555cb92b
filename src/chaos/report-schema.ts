/**
 * @module
 * What the chaos tools answer with: the shape that clients and drills rely on.
 */
import { z } from 'zod';
import type { FaultReport } from './active-fault.ts';

/** A fault as the tools show it. */
export const faultReportSchema = z.object({
  id: z.string(),
  kind: z.string(),
  target: z.record(z.string(), z.string()),
  armedAt: z.string(),
  expiresAt: z.string().describe('When it clears itself.'),
  injected: z.number().int().describe('Attempts that it has struck.'),
  missed: z
    .number()
    .int()
    .describe('Attempts that it chose, and that did nothing it could act on, such as a request.'),
  seed: z.number().int(),
  by: z.string().describe('Who armed it.'),
  reason: z.string().optional(),
  settings: z.record(z.string(), z.unknown()),
  endedAt: z.string().optional(),
  endReason: z.string().optional(),
});

/** What a fault would strike. */
export const wouldHitSchema = z.object({
  callsInLast5Minutes: z.number().int(),
  routes: z.array(
    z.object({
      tool: z.string().optional(),
      dependency: z.string().optional(),
      upstream: z.string().optional(),
      calls: z.number().int(),
    }),
  ),
});

/** One line for people. */
export const faultLine = (fault: FaultReport): string => {
  const { id, kind, target, expiresAt, injected, missed, by, reason, endReason, endedAt } = fault;
  const whom = Object.entries(target)
    .map(([key, value]) => `${key} ${value}`)
    .join(', ');
  const when = endReason ? `ended ${endedAt} (${endReason})` : `until ${expiresAt}`;
  const counts = `${injected} struck${missed > 0 ? `, ${missed} missed` : ''}`;
  return `- ${id}: ${kind} on ${whom}, ${when}, ${counts}, by ${by}${reason ? `: ${reason}` : ''}`;
};
