/**
 * @module
 * What a drill is, as data: a hypothesis, the steady state, load, faults at set times, and what
 * is expected of the reaction. Built-in drills and those in files have the same shape.
 */
import { z } from 'zod';
import { anObject, expectationSchema, type Figure, text } from './drill-expectation.ts';
import { type FaultInput, faultSchema } from './fault.ts';

const whole = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};

const seconds = (min: number, max: number) => {
  const error = `must be a number from ${min} to ${max} (seconds)`;
  return z.number({ error }).min(min, { error }).max(max, { error });
};

const loadSchema = z.strictObject(
  {
    /** Default: the name of the tool. */
    name: text('a name').optional(),
    tool: text('the name of a tool'),
    /** `{agent}` and `{call}` in texts become the number of the agent and of the call. */
    arguments: z.record(z.string(), z.unknown(), anObject).default({}),
    /** Agents that call at the same time. */
    agents: whole(1, 100).default(1),
    /** Milliseconds from the beginning of one call of an agent to that of its next one. */
    everyMs: whole(10, 60_000).default(100),
    /** How often an agent repeats a call that failed, at once and without being asked. */
    retries: whole(0, 10).default(0),
    /** Milliseconds until an agent gives up waiting. */
    timeoutMs: whole(10, 60_000).default(10_000),
  },
  anObject,
);

/** Checked as `inject_fault` does it, and left as it is written. */
const injectSchema = z.custom<FaultInput>().superRefine((value, context) => {
  for (const { path, message } of faultSchema.safeParse(value).error?.issues ?? []) {
    context.addIssue({ code: 'custom', path, message });
  }
});

const timedFaultSchema = z
  .strictObject(
    {
      /** Seconds from the beginning of the phase `fault`. */
      at: seconds(0, 600).default(0),
      /** Seconds from the beginning of the phase; default: its end. */
      until: seconds(0, 600).optional(),
      /** Arguments of `inject_fault`. Unless it says so, its ttl outlives the phase. */
      inject: injectSchema.optional(),
      /**
       * `black_hole`: the collector takes what it is sent and never answers. Unless `until` is
       * given, it stays so until the server has ended.
       */
      collector: z.literal('black_hole', { error: 'must be "black_hole"' }).optional(),
    },
    anObject,
  )
  .superRefine(({ inject, collector }, context) => {
    if ((inject === undefined) === (collector === undefined)) {
      const message = 'must have either inject or collector';
      context.addIssue({ code: 'custom', path: [], message });
    }
  });

const list = <T extends z.ZodType>(item: T, least: number, what: string) => {
  const error = `must be a list of at least ${least} ${what}`;
  return z.array(item, { error }).min(least, { error });
};

const phaseSchema = z.strictObject({ seconds: seconds(0.5, 600) }, anObject);

/** Validates a drill and fills in what is absent. */
export const drillSchema = z
  .strictObject(
    {
      name: z
        .string({ error: 'must be a name' })
        .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be of lower-case letters, digits and hyphens')
        .max(64, 'must be of at most 64 characters'),
      hypothesis: text('the hypothesis, in words'),
      server: z
        .strictObject(
          {
            /** Configuration of the server, as in the file of `serve --config`. */
            config: z.record(z.string(), z.unknown(), anObject).default({}),
            /** Milliseconds that the upstream takes to answer. */
            upstreamMs: whole(0, 10_000).default(10),
          },
          anObject,
        )
        .prefault({}),
      load: list(loadSchema, 1, 'load'),
      steady: z.strictObject(
        {
          seconds: seconds(0.5, 600),
          /** Of the phase `steady`, out of `calls` alone; without it no fault is armed. */
          expect: list(expectationSchema, 1, 'expectation: what is normal'),
        },
        anObject,
      ),
      fault: phaseSchema,
      recovery: phaseSchema,
      faults: list(timedFaultSchema, 1, 'fault'),
      expect: list(expectationSchema, 1, 'expectation'),
    },
    { error: 'must be a JSON object' },
  )
  .superRefine((drill, context) => {
    const refuse = (path: (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
    const names = drill.load.map(({ name, tool }) => name ?? tool);
    for (const [index, name] of names.entries()) {
      if (names.indexOf(name) !== index) {
        refuse(['load', index, 'name'], `"${name}" is taken; give each load a name of its own`);
      }
    }
    for (const [index, { at, until = drill.fault.seconds }] of drill.faults.entries()) {
      if (until > drill.fault.seconds) {
        refuse(
          ['faults', index, 'until'],
          `must be at most ${drill.fault.seconds}: the phase ends`,
        );
      } else if (at >= until) refuse(['faults', index, 'at'], `must be less than ${until}`);
    }
    const loads = (of: Figure, path: (string | number)[]) => {
      if (of.source === 'calls' && of.load !== undefined && !names.includes(of.load)) {
        refuse([...path, 'load'], `must be the name of a load: ${names.join(', ')}`);
      }
    };
    for (const [index, { of, per }] of drill.expect.entries()) {
      loads(of, ['expect', index, 'of']);
      if (per) loads(per, ['expect', index, 'per']);
    }
    for (const [index, { of }] of drill.steady.expect.entries()) {
      loads(of, ['steady', 'expect', index, 'of']);
      if (of.source !== 'calls' || of.phase !== 'steady') {
        const message = 'must be of the source "calls" and the phase "steady"';
        refuse(['steady', 'expect', index, 'of'], message);
      }
    }
  });

export type DrillInput = z.input<typeof drillSchema>;
export type Drill = z.output<typeof drillSchema>;
export type Load = Drill['load'][number];
export type Fault = Drill['faults'][number];

/** What a load is called on figures. */
export const nameOf = ({ name, tool }: Load): string => name ?? tool;
