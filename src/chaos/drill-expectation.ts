/**
 * @module
 * What a drill can expect: a measure of something that was recorded, and its bounds.
 */
import { z } from 'zod';

/** A text that is not empty. */
export const text = (what: string) =>
  z.string({ error: `must be ${what}` }).min(1, `must be ${what}`);

/** For schemas of objects. */
export const anObject = { error: 'must be an object' };

/** One of the three parts of a run. */
const PHASES = ['steady', 'fault', 'recovery'] as const;
export type Phase = (typeof PHASES)[number];
const phase = z.enum(PHASES, { error: `must be one of ${PHASES.join(', ')}` });

const oneOrMore = z.union([text('a text').transform((one) => [one]), z.array(text('a text'))], {
  error: 'must be a text or a list of texts',
});

const OUTCOMES = ['success', 'degraded', 'cached', 'error', 'rejected', 'lost'] as const;
const outcome = z.enum(OUTCOMES);
const outcomes = z.union([outcome.transform((one) => [one]), z.array(outcome)], {
  error: `must be one of ${OUTCOMES.join(', ')}, or a list of them`,
});

const attributes = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]), {
  error: 'must be an object of attribute names with a text, a number, true or false each',
});

/** What an expectation looks at. */
const figureSchema = z.discriminatedUnion(
  'source',
  [
    /** What the agents of the load saw. */
    z.strictObject({
      source: z.literal('calls'),
      phase: phase.optional(),
      load: text('the name of a load').optional(),
      /** `tool.outcome` as the answer tells it, or `lost`: no answer at all. */
      outcome: outcomes.optional(),
      /** Code of the failure. */
      code: oneOrMore.optional(),
      /** True: only those that were told when to come again. */
      retryAfter: z.boolean({ error: 'must be true or false' }).optional(),
    }),
    /** Spans of the server. */
    z.strictObject({
      source: z.literal('spans'),
      phase: phase.optional(),
      name: text('the name of a span').optional(),
      kind: z
        .enum(['internal', 'server', 'client'], {
          error: 'must be one of internal, server, client',
        })
        .optional(),
      /** Whether the status of the span is an error. */
      error: z.boolean({ error: 'must be true or false' }).optional(),
      attributes: attributes.optional(),
    }),
    /** Events of the server: log records with an event name. */
    z.strictObject({
      source: z.literal('events'),
      phase: phase.optional(),
      name: text('the name of an event'),
      attributes: attributes.optional(),
    }),
    /** A metric of the server, over the whole run. */
    z.strictObject({
      source: z.literal('metric'),
      name: text('the name of a metric'),
      attributes: attributes.optional(),
    }),
    /** Requests that reached the upstream itself; injected faults stand before it. */
    z.strictObject({
      source: z.literal('upstream'),
      phase: phase.optional(),
      upstream: z
        .enum(['weather', 'search'], { error: 'must be one of weather, search' })
        .optional(),
    }),
    /** How the server ended when it was told to. */
    z.strictObject({ source: z.literal('exit') }),
  ],
  { error: 'must have a source: one of calls, spans, events, metric, upstream, exit' },
);

/** Which measures there are of each source. */
export const MEASURES = {
  calls: ['count', 'share', 'p50', 'p95', 'p99', 'longest', 'first', 'last'],
  spans: ['count', 'p50', 'p95', 'p99', 'longest', 'first', 'last', 'shortestGap'],
  events: ['count', 'first', 'last'],
  metric: ['total', 'highest'],
  upstream: ['count', 'first', 'last'],
  exit: ['code', 'seconds'],
} as const;

const ALL_MEASURES = [...new Set(Object.values(MEASURES).flat())];

const bound = z.number({ error: 'must be a number' }).optional();

/** Validates an expectation. */
export const expectationSchema = z
  .strictObject(
    {
      /** What is expected, in words. */
      that: text('what is expected, in words'),
      measure: z.enum(ALL_MEASURES, { error: `must be one of ${ALL_MEASURES.join(', ')}` }),
      of: figureSchema,
      /** Divides by the count of something else. */
      per: figureSchema.optional(),
      /** Divides by the same measure in another phase. */
      comparedTo: phase.optional(),
      equals: bound,
      atLeast: bound,
      atMost: bound,
    },
    anObject,
  )
  .superRefine(({ measure, of, per, comparedTo, equals, atLeast, atMost }, context) => {
    const refuse = (path: string[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
    const fitting: readonly string[] = MEASURES[of.source];
    if (!fitting.includes(measure)) {
      refuse(['measure'], `of ${of.source} must be one of ${fitting.join(', ')}`);
    }
    if (equals === undefined && atLeast === undefined && atMost === undefined) {
      refuse([], 'must have a bound: equals, atLeast or atMost');
    }
    const phaseOf = 'phase' in of ? of.phase : undefined;
    if ((measure === 'first' || measure === 'last') && phaseOf === undefined) {
      refuse(['of', 'phase'], `must be given for ${measure}, which counts from its beginning`);
    }
    if (comparedTo !== undefined && phaseOf === undefined) {
      refuse(['of', 'phase'], 'must be given for comparedTo');
    }
    if (per !== undefined && (measure !== 'count' || !isCounted(per.source))) {
      refuse(['per'], 'divides one count by another: it needs the measure count, on both sides');
    }
  });

const isCounted = (source: keyof typeof MEASURES): boolean =>
  (MEASURES[source] as readonly string[]).includes('count');

export type Expectation = z.output<typeof expectationSchema>;
export type Figure = z.output<typeof figureSchema>;
export type Measure = Expectation['measure'];
