/**
 * @module
 * The tools that see and end faults: `list_faults`, `clear_fault`, `halt_chaos`. They are never
 * targets themselves, and none of them fails because there is nothing to do.
 */
import { z } from 'zod';
import { defineTool, type Tool } from '../mcp/tool.ts';
import { redact } from '../resilience/redact.ts';
import type { FaultRegistry } from './fault-registry.ts';
import { actorOf } from './inject-fault.ts';
import { faultLine, faultReportSchema } from './report-schema.ts';

const listOutput = z.object({
  faults: z.array(faultReportSchema).describe('Active now.'),
  halted: z.boolean(),
  haltReason: z.string().optional(),
  recent: z.array(faultReportSchema).describe('The last ones that ended, newest first.'),
});

const clearOutput = z.object({ cleared: z.number().int() });

const haltOutput = z.object({
  halted: z.boolean(),
  cleared: z.number().int(),
  haltReason: z.string().optional(),
});

const createListTool = (faults: FaultRegistry): Tool =>
  defineTool({
    name: 'list_faults',
    title: 'List faults',
    description: 'Faults that are active, whom they have struck so far, and the last that ended.',
    inputSchema: z.strictObject({}),
    outputSchema: listOutput,
    annotations: {
      title: 'List faults',
      readOnlyHint: true,
      idempotentHint: true,
      openWorldHint: false,
    },
    handler: () => {
      const list = faults.list();
      const lines = [
        list.faults.length === 0 ? 'No fault is active.' : 'Active:',
        ...list.faults.map(faultLine),
        ...(list.halted ? [`Halted: ${list.haltReason}`] : []),
        ...(list.recent.length > 0 ? ['Ended:', ...list.recent.map(faultLine)] : []),
      ];
      return {
        content: [{ type: 'text', text: lines.join('\n') }],
        structuredContent: { ...list },
      };
    },
  }) as unknown as Tool;

const createClearTool = (faults: FaultRegistry): Tool =>
  defineTool({
    name: 'clear_fault',
    title: 'Clear faults',
    description:
      'Ends one fault (id) or all of them (all: true). Ending one that has ended is fine.',
    inputSchema: z
      .strictObject({
        id: z.string().max(100).optional().describe('Id of the fault, as list_faults tells.'),
        all: z.boolean().optional().describe('True ends all of them.'),
      })
      .refine(({ id, all }) => (id === undefined) !== (all !== true), {
        message: 'give either id, or all: true',
        path: ['id'],
      }),
    outputSchema: clearOutput,
    annotations: {
      title: 'Clear faults',
      readOnlyHint: false,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    },
    handler: ({ id }) => {
      const cleared = id === undefined ? faults.clearAll() : Number(faults.clear(id));
      const text = cleared === 0 ? 'There was nothing to clear.' : `Cleared ${cleared}.`;
      return { content: [{ type: 'text', text }], structuredContent: { cleared } };
    },
  }) as unknown as Tool;

const createHaltTool = (faults: FaultRegistry): Tool =>
  defineTool({
    name: 'halt_chaos',
    title: 'Halt chaos',
    description:
      'Emergency stop: ends all faults at once and refuses new ones until it is called with lift: true.',
    inputSchema: z.strictObject({
      lift: z.boolean().default(false).describe('True allows faults again.'),
      reason: z.string().trim().max(500).optional().describe('Why.'),
    }),
    outputSchema: haltOutput,
    annotations: {
      title: 'Halt chaos',
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: true,
      openWorldHint: false,
    },
    handler: ({ lift, reason }, context) => {
      if (lift) {
        const was = faults.lift();
        const text = was ? 'Faults are allowed again.' : 'Chaos was not halted.';
        return {
          content: [{ type: 'text', text }],
          structuredContent: { halted: false, cleared: 0 },
        };
      }
      const by = actorOf(context);
      const cleared = faults.halt(reason ? `by ${by}: ${redact(reason)}` : `by ${by}`);
      const { haltReason = '' } = faults.list();
      return {
        content: [{ type: 'text', text: `Halted, ${cleared} cleared. ${haltReason}` }],
        structuredContent: { halted: true, cleared, haltReason },
      };
    },
  }) as unknown as Tool;

/** Makes `list_faults`, `clear_fault` and `halt_chaos`. */
export const createControlTools = (faults: FaultRegistry): readonly Tool[] => [
  createListTool(faults),
  createClearTool(faults),
  createHaltTool(faults),
];

/** Names of the chaos tools that end what `inject_fault` began. */
export const CONTROL_TOOLS = ['list_faults', 'clear_fault', 'halt_chaos'] as const;
