/**
 * @module
 * Arms and clears the faults of a drill at their times, through the same tools that anybody else
 * would use.
 */
import type { HttpClient } from '../mcp/client.ts';
import { type Clock, sleep } from '../resilience/clock.ts';
import type { PhaseTime } from './drill-figures.ts';
import type { Fault } from './drill-schema.ts';
import type { Sink } from './drill-sink.ts';

/** What faults need. */
export interface FaultOptions {
  readonly operator: HttpClient;
  readonly sink: Sink;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
  /** Length of the phase, in seconds. */
  readonly seconds: number;
}

/** Seconds that a fault lives beyond its time should nobody clear it. */
const SPARE = 30;

const MAX_TTL = 900;

const describe = ({ inject, collector }: Fault): string =>
  inject === undefined
    ? `collector ${collector}`
    : `${inject.kind} on ${Object.values(inject.target).join(', ')}`;

const textOf = (content: readonly { readonly [key: string]: unknown }[]): string =>
  content.map(({ text }) => (typeof text === 'string' ? text : '')).join(' ');

/** Arms one fault and returns how to clear it. */
const arm = async (fault: Fault, options: FaultOptions): Promise<() => Promise<void>> => {
  const { operator, sink, seconds } = options;
  const { inject } = fault;
  if (inject === undefined) {
    sink.mode = 'black_hole';
    return async () => {
      if (fault.until !== undefined) sink.mode = 'answer';
    };
  }
  const ttlSeconds = Math.min(Math.ceil(seconds) + SPARE, MAX_TTL);
  const result = await operator.call('inject_fault', { ttlSeconds, reason: 'drill', ...inject });
  const armed = result.structuredContent?.fault as { readonly id?: unknown } | undefined;
  if (result.isError === true || typeof armed?.id !== 'string') {
    throw new Error(`the fault ${describe(fault)} was not armed: ${textOf(result.content)}`);
  }
  const { id } = armed;
  return async () => {
    const cleared = await operator.call('clear_fault', { id });
    if (cleared.isError === true) {
      throw new Error(`the fault ${describe(fault)} was not cleared: ${textOf(cleared.content)}`);
    }
  };
};

/**
 * Runs the phase `fault`: arms each fault at its time and clears it at its end. Resolves when the
 * phase is over and nothing is armed any more, with the time from when all that are armed at its
 * beginning were until the first is cleared at its end: what happens while they are being armed
 * and cleared belongs to no phase.
 *
 * @throws Error when a fault is not armed or not cleared; the reason of the signal
 */
export const runFaults = async (
  faults: readonly Fault[],
  options: FaultOptions,
): Promise<PhaseTime> => {
  const { clock, signal, say, seconds } = options;
  const begun = clock.now();
  let from = clock.wallTime();
  let to = from;
  const until = (second: number): Promise<void> =>
    sleep(clock, Math.max(0, begun + second * 1_000 - clock.now()), signal);
  const theEnd = async (): Promise<void> => {
    await until(seconds);
    to = clock.wallTime();
  };
  const live = async (fault: Fault): Promise<void> => {
    await until(fault.at);
    const clear = await arm(fault, options);
    if (fault.at === 0) from = clock.wallTime();
    say(`  armed: ${describe(fault)}`);
    try {
      await until(fault.until ?? seconds);
    } finally {
      await clear();
      if (fault.inject !== undefined || fault.until !== undefined) {
        say(`  cleared: ${describe(fault)}`);
      }
    }
  };
  const ended = await Promise.allSettled([theEnd(), ...faults.map(live)]);
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  return { from, to };
};
