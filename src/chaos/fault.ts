/**
 * @module
 * What a fault is: its kind, whom it is aimed at, which attempts it strikes, and how much of it
 * there is. The schema is the input of `inject_fault` and checks faults out of drill files too.
 */
import { z } from 'zod';

/** Kinds that act on the HTTP request that an attempt makes. */
export const HTTP_KINDS = [
  'status',
  'connection_refused',
  'connection_reset',
  'half_closed_body',
  'dns',
  'malformed_json',
  'truncated_body',
  'empty_body',
  'oversized_body',
  'dripping_body',
  'wrong_content_type',
] as const;

/** Kinds that act on the attempt itself, whatever it calls. */
const CALL_KINDS = ['latency', 'hang'] as const;

/** Kinds that take the place of a tool's answer. */
const ANSWER_KINDS = ['tool_error', 'protocol_error'] as const;

/** Kinds that an upstream server must lend a hand to: see `UpstreamHooks`. */
const UPSTREAM_KINDS = ['upstream_exit', 'session_loss'] as const;

/** Every kind of fault. */
export const FAULT_KINDS = [
  ...CALL_KINDS,
  ...HTTP_KINDS,
  ...ANSWER_KINDS,
  ...UPSTREAM_KINDS,
] as const;

/** Kind of a fault that acts on HTTP requests. */
export type HttpFaultKind = (typeof HTTP_KINDS)[number];

/** Seconds that a fault lives where nobody says otherwise. */
export const DEFAULT_TTL = 60;
/** Seconds that a fault lives at most: nobody comes back tomorrow to one that was forgotten. */
export const MAX_TTL = 15 * 60;

/** Retry-After beyond what any policy waits for: 1000 years. */
const ABSURD = '31536000000';

const name = z.string().trim().min(1).max(128);

const targetSchema = z
  .strictObject({
    tool: name.optional().describe('Calls of this tool.'),
    dependency: name.optional().describe('Calls of this dependency, whichever tool makes them.'),
    upstream: name.optional().describe('Calls of this upstream server (gateway).'),
    session: name.optional().describe('Of these, only the calls of one MCP session, by its id.'),
  })
  .refine(({ tool, dependency, upstream }) => tool ?? dependency ?? upstream, {
    message: 'must name a tool, a dependency or an upstream; of several, all must match',
  });

const latencySchema = z
  .strictObject({
    distribution: z
      .enum(['fixed', 'uniform', 'normal', 'pareto'])
      .default('fixed')
      .describe('Default fixed.'),
    delayMs: z
      .number()
      .min(0)
      .max(300_000)
      .describe('The delay (fixed), its middle (uniform, normal) or its least value (pareto).'),
    spreadMs: z
      .number()
      .min(0)
      .max(300_000)
      .optional()
      .describe('Half the width (uniform) or the standard deviation (normal). Default 0.'),
    shape: z
      .number()
      .min(0.1)
      .max(100)
      .optional()
      .describe('Of pareto: the smaller, the longer its tail. Default 2.'),
  })
  .describe('Of kind latency. No delay is longer than 300 000 ms.');

const secondsSchema = z.number().min(0.001).max(MAX_TTL);

const faultFields = {
  kind: z.enum(FAULT_KINDS).describe('What goes wrong.'),
  target: targetSchema.describe('Whom it strikes.'),
  ttlSeconds: z
    .number()
    .positive()
    .max(MAX_TTL)
    .default(DEFAULT_TTL)
    .describe(`Seconds until it clears itself, at most ${MAX_TTL}.`),
  maxCount: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Attempts that it strikes at most; then it clears itself.'),
  firstAttempts: z
    .int()
    .min(1)
    .max(100)
    .optional()
    .describe('Strikes only the first n attempts of each call, so that a retry gets through.'),
  every: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('Strikes only every k-th attempt that it could strike.'),
  percent: z
    .number()
    .positive()
    .max(100)
    .optional()
    .describe('Strikes this share of the attempts, by chance. Default 100.'),
  seed: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .optional()
    .describe('Of chance: the same seed strikes the same attempts. Default: drawn, and told.'),
  reason: z.string().trim().max(500).optional().describe('Why, for the audit log.'),
  latency: latencySchema.optional(),
  status: z
    .union([z.literal(429), z.literal(500), z.literal(502), z.literal(503), z.literal(504)])
    .optional()
    .describe('Of kind status. Default 503.'),
  retryAfter: z
    .union([
      z.number().min(0).max(1e12),
      z.string().regex(/^[\x20-\x7e]{1,100}$/, 'must be printable ASCII of 1 to 100 characters'),
    ])
    .optional()
    .describe(
      'Retry-After of kind status: seconds; "date:N" for an HTTP date in N seconds; "absurd"; "malformed"; or the text of the header.',
    ),
  dnsCode: z
    .enum(['ENOTFOUND', 'EAI_AGAIN'])
    .optional()
    .describe('Of kind dns: no such name, or no answer. Default ENOTFOUND.'),
  flapping: z
    .strictObject({ onSeconds: secondsSchema, offSeconds: secondsSchema })
    .optional()
    .describe('Comes and goes, beginning with on.'),
  ramp: z
    .strictObject({ overSeconds: secondsSchema })
    .optional()
    .describe('Grows from nothing to its whole over this time: the delay, or else the percent.'),
};

type Fields = z.output<z.ZodObject<typeof faultFields>>;

/** Settings that belong to one kind, and would do nothing with another. */
const OWNER = {
  latency: 'latency',
  status: 'status',
  retryAfter: 'status',
  dnsCode: 'dns',
} as const;

const checkFields = (
  fault: Fields,
  context: { addIssue(issue: { code: 'custom'; path: string[]; message: string }): void },
): void => {
  const refuse = (field: string, message: string) =>
    context.addIssue({ code: 'custom', path: [field], message });
  for (const [field, kind] of Object.entries(OWNER)) {
    if (fault[field as keyof typeof OWNER] !== undefined && fault.kind !== kind) {
      refuse(field, `belongs to the kind ${kind}; leave it out for ${fault.kind}`);
    }
  }
  if (fault.kind === 'latency' && fault.latency === undefined) {
    refuse('latency', 'is needed for the kind latency, such as { "delayMs": 500 }');
  }
  if (UPSTREAM_KINDS.some((kind) => kind === fault.kind) && fault.target.upstream === undefined) {
    refuse('target', `must name an upstream for the kind ${fault.kind}`);
  }
};

/** Checks a fault and fills in the defaults. */
export const faultSchema = z.strictObject(faultFields).superRefine(checkFields);

/** Input of `inject_fault`. */
export const injectSchema = z
  .strictObject({
    ...faultFields,
    dryRun: z
      .boolean()
      .default(false)
      .describe('True arms nothing and tells what it would strike.'),
  })
  .superRefine(checkFields);

/**
 * A fault as it is written, defaults left out.
 *
 * @example
 * ```ts
 * import type { FaultInput } from 'mcp-resilience/chaos';
 * const burst: FaultInput = {
 *   kind: 'status',
 *   status: 503,
 *   target: { dependency: 'news-api' },
 *   percent: 50,
 *   seed: 7,
 *   ttlSeconds: 30,
 * };
 * ```
 */
export type FaultInput = z.input<typeof faultSchema>;

/** A fault that was checked, with its defaults. */
export type FaultSpec = z.output<typeof faultSchema>;

/** Whom a fault strikes. */
export type FaultTarget = FaultSpec['target'];

/** True for kinds that act on HTTP requests. */
export const isHttpKind = (kind: FaultSpec['kind']): kind is HttpFaultKind =>
  (HTTP_KINDS as readonly string[]).includes(kind);

/** A target as telemetry names it. The session is left out: there are too many of them. */
export const targetText = ({ tool, dependency, upstream }: FaultTarget): string =>
  Object.entries({ tool, dependency, upstream })
    .flatMap(([key, value]) => (value === undefined ? [] : [`${key}:${value}`]))
    .join(' ');

/** The header that `retryAfter` stands for; undefined for none. */
export const retryAfterHeader = (
  { retryAfter }: Pick<FaultSpec, 'retryAfter'>,
  wallTime: number,
): string | undefined => {
  if (typeof retryAfter !== 'string') return retryAfter?.toString();
  if (retryAfter === 'absurd') return ABSURD;
  if (retryAfter === 'malformed') return 'soon';
  const [, seconds] = /^date:(\d{1,9})$/.exec(retryAfter) ?? [];
  return seconds === undefined
    ? retryAfter
    : new Date(wallTime + Number(seconds) * 1_000).toUTCString();
};
