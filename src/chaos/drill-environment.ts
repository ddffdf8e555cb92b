/**
 * @module
 * What every drill needs, whatever it drills: where it runs, what its servers are given, and how
 * it is cleaned up behind.
 */
import type { Clock } from '../resilience/clock.ts';
import type { Forwarding } from './drill-sink.ts';
import type { DrillResult } from './drill-verdict.ts';

/** What drills run in. */
export interface DrillEnvironment {
  /** The command line of this command, to which a subcommand and its flags are added. */
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  /** Aborted when it is to end at once. */
  readonly signal: AbortSignal;
  /** Tells a person how it goes. */
  readonly say: (line: string) => void;
  /** Where telemetry is handed on to. Default: nowhere. */
  readonly forwarding?: Forwarding;
}

/** Something that can be run and judged. */
export interface RunnableDrill {
  readonly name: string;
  readonly hypothesis: string;
  /**
   * Runs it to its end, and leaves nothing behind.
   *
   * @throws the reason of the signal; whatever else goes wrong is part of the result
   */
  run(environment: DrillEnvironment): Promise<DrillResult>;
}

/** What is undone when a run ends, last first. */
export class Cleanup {
  readonly #steps: (() => Promise<unknown>)[] = [];

  add(step: () => Promise<unknown>): void {
    this.#steps.push(step);
  }

  /** Takes every step, whatever becomes of the others. A second call has nothing left to do. */
  async run(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step();
      } catch {
        // What cannot be undone must not keep the rest from being undone.
      }
    }
  }
}

/** Variables of this process that the server of a drill is given too. */
const INHERITED = [
  'PATH',
  'HOME',
  'TMPDIR',
  'SystemRoot',
  'OTEL_SERVICE_NAME',
  'OTEL_RESOURCE_ATTRIBUTES',
];

/** The environment of a server whose telemetry goes to a sink, often and all of it. */
export const serverEnvironment = (
  env: NodeJS.ProcessEnv,
  sinkUrl: string,
  more: Readonly<Record<string, string>> = {},
): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(INHERITED.flatMap((name) => (env[name] ? [[name, env[name]]] : []))),
  OTEL_EXPORTER_OTLP_ENDPOINT: sinkUrl,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_METRIC_EXPORT_INTERVAL: '500',
  OTEL_BSP_SCHEDULE_DELAY: '250',
  OTEL_BSP_MAX_QUEUE_SIZE: '20000',
  OTEL_BLRP_SCHEDULE_DELAY: '250',
  OTEL_BLRP_MAX_QUEUE_SIZE: '20000',
  ...more,
});

/** Runs `measure` and puts together the result; what it throws is the problem of the result. */
export const conclude = async (
  { name, hypothesis }: Pick<RunnableDrill, 'name' | 'hypothesis'>,
  { clock, signal }: DrillEnvironment,
  measure: (cleanup: Cleanup) => Promise<Pick<DrillResult, 'expectations' | 'notes' | 'problem'>>,
): Promise<DrillResult> => {
  const startedAt = new Date(clock.wallTime()).toISOString();
  const begun = clock.now();
  const cleanup = new Cleanup();
  let found: Pick<DrillResult, 'expectations' | 'notes' | 'problem'>;
  try {
    found = await measure(cleanup);
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    found = { expectations: [], notes: [], problem };
  } finally {
    await cleanup.run();
  }
  signal.throwIfAborted();
  const pass = found.problem === undefined && found.expectations.every(({ pass }) => pass);
  const seconds = (clock.now() - begun) / 1_000;
  return { name, hypothesis, pass, startedAt, seconds, ...found };
};
