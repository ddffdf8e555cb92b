/**
 * @module
 * The tool `inject_fault`: arms a fault, after a person was asked where the client can ask one.
 */
import { z } from 'zod';
import { failureResult } from '../mcp/protected-result.ts';
import { defineTool, type Tool, type ToolContext, type ToolResult } from '../mcp/tool.ts';
import { createFailure } from '../resilience/failure.ts';
import { redact } from '../resilience/redact.ts';
import { type FaultSpec, injectSchema, targetText } from './fault.ts';
import { ChaosError, type FaultRegistry } from './fault-registry.ts';
import type { RecentCalls } from './recent-calls.ts';
import { faultLine, faultReportSchema, wouldHitSchema } from './report-schema.ts';

/** Name of the tool. */
export const INJECT_FAULT = 'inject_fault';

const outputSchema = z.object({
  fault: faultReportSchema.optional().describe('Absent for a dry run.'),
  dryRun: z.boolean(),
  wouldHit: wouldHitSchema.optional().describe('Of a dry run.'),
});

/** What the tool needs. */
export interface InjectFaultOptions {
  readonly faults: FaultRegistry;
  readonly calls: RecentCalls;
  /** Called before a fault is armed: other dispatchers may have been set meanwhile. */
  readonly prepare: () => void;
}

const CONFIRM = {
  type: 'object',
  properties: {
    confirm: { type: 'boolean', title: 'Arm this fault', default: true },
  },
} as const;

/** Who asks, in a form that may be logged. */
export const actorOf = ({ principal, client }: ToolContext): string => {
  const name = principal ?? (client ? `${client.name} ${client.version}` : 'unknown client');
  return redact(name.slice(0, 200)).replace(/\s+/g, ' ');
};

const doseOf = ({ ttlSeconds, maxCount, firstAttempts, every, percent }: FaultSpec): string =>
  [
    `for ${ttlSeconds} s`,
    maxCount !== undefined && `at most ${maxCount} times`,
    firstAttempts !== undefined && `the first ${firstAttempts} attempts of each call`,
    every !== undefined && `every ${every}. attempt`,
    percent !== undefined && `${percent} % of the attempts`,
  ]
    .filter(Boolean)
    .join(', ');

/** Why it must not be armed; undefined when the person agrees, or nobody can be asked. */
const refusedBy = async (spec: FaultSpec, { elicit }: ToolContext): Promise<string | undefined> => {
  if (elicit === undefined) return undefined;
  const why = spec.reason ? ` Reason: ${spec.reason}` : '';
  const question = `Arm the fault ${spec.kind} on ${targetText(spec.target)} ${doseOf(spec)}? Calls of it will fail or be slow.${why}`;
  try {
    const { action, content } = await elicit(question, CONFIRM);
    if (action !== 'accept') {
      return action === 'decline' ? 'the person who was asked declined' : 'nobody agreed';
    }
    return content?.confirm === false ? 'the person who was asked declined' : undefined;
  } catch (error) {
    const { message } = error instanceof Error ? error : new Error(String(error));
    return `nobody could be asked (${redact(message)})`;
  }
};

const refusal = (message: string, suggestion: string): ToolResult =>
  failureResult(createFailure('REQUEST_REJECTED', { message, suggestion }));

/** Makes `inject_fault`. */
export const createInjectFaultTool = ({
  faults,
  calls,
  prepare,
}: InjectFaultOptions): Tool<typeof injectSchema, typeof outputSchema> =>
  defineTool({
    name: INJECT_FAULT,
    title: 'Inject a fault',
    description:
      'Makes calls of a tool, a dependency or an upstream fail or be slow, for a limited time, to see how this server takes it. Try dryRun first; read the resource chaos://playbook. clear_fault ends it, halt_chaos ends all.',
    inputSchema: injectSchema,
    outputSchema,
    annotations: {
      title: 'Inject a fault',
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: false,
    },
    handler: async ({ dryRun, reason, ...rest }, context) => {
      const spec: FaultSpec = { ...rest, ...(reason && { reason: redact(reason) }) };
      try {
        faults.check(spec);
        if (dryRun) {
          const routes = calls.of(spec.target);
          const total = routes.reduce((sum, route) => sum + route.calls, 0);
          const whom = targetText(spec.target);
          const text = `Dry run: nothing was armed. ${spec.kind} on ${whom} ${doseOf(spec)} would be aimed at what ${total} calls of the last 5 minutes used.`;
          return {
            content: [{ type: 'text', text }],
            structuredContent: { dryRun: true, wouldHit: { callsInLast5Minutes: total, routes } },
          };
        }
        const why = await refusedBy(spec, context);
        if (why !== undefined) {
          return refusal(`nothing was armed: ${why}`, 'Do not try again without being asked to.');
        }
        context.signal.throwIfAborted();
        prepare();
        const fault = faults.arm(spec, { by: actorOf(context), gone: context.sessionEnded });
        return {
          content: [{ type: 'text', text: `Armed.\n${faultLine(fault)}` }],
          structuredContent: { fault, dryRun: false },
        };
      } catch (error) {
        if (!(error instanceof ChaosError)) throw error;
        return refusal(`nothing was armed: ${error.message}`, 'Correct it, or call list_faults.');
      }
    },
  });
