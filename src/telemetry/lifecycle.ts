/**
 * @module
 * What a caller gets from `startTelemetry()`: reading, flushing and ending within a bound,
 * whatever the SDK and the collector behind it do.
 */
import { diag } from '@opentelemetry/api';
import { createSnapshot, EMPTY_SNAPSHOT, type MetricsLike, type Snapshot } from './snapshot.ts';

export interface Telemetry {
  /** Whether this package exports any signal. */
  readonly exporting: boolean;
  /** Where signals go, for a human to read: `http://localhost:4318 (http/json)`. */
  readonly destination: string;
  /**
   * The metrics as they are now; works without an endpoint. Empty if OTEL_SDK_DISABLED is set,
   * or if another SDK had registered its metrics first. After `shutdown()`: the last ones.
   */
  snapshot(): Promise<Snapshot>;
  /** Sends what is waiting. Never rejects, and takes no longer than `flushTimeout`. */
  flush(): Promise<void>;
  /**
   * Sends what is waiting and ends telemetry. Never rejects, takes no longer than
   * `flushTimeout` whatever the collector does, and leaves nothing that holds the process.
   * A second call returns the promise of the first.
   */
  shutdown(): Promise<void>;
}

/**
 * How long `flush()` and `shutdown()` wait unless told otherwise, in ms: time for a slow answer
 * and one retry, and well below the 2 s by which telemetry may delay an exit.
 */
export const DEFAULT_FLUSH_TIMEOUT = 1_500;

/** A started SDK, or as much of it as was started. Any of these may reject or hang. */
export interface Running {
  collect(): Promise<{ resourceMetrics: MetricsLike; errors: readonly unknown[] }>;
  /** @param limit how long the caller waits for it, in ms */
  flush(limit: number): Promise<unknown>;
  end(): Promise<unknown>;
  /** Lets go of what `end()` still waits for. */
  abandon(): void;
}

const complain = (doing: string, error: unknown): void =>
  diag.error(`${doing} failed: ${error instanceof Error ? error.message : String(error)}`);

/** Waits for `work` no longer than `ms`. The timer holds the process, since exports do not. */
const within = (ms: number, doing: string, work: () => Promise<unknown>): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    work()
      .catch((error: unknown) => complain(doing, error))
      .finally(() => {
        clearTimeout(timer);
        resolve();
      });
  });

export const createTelemetry = (
  running: Running,
  {
    exporting,
    destination,
    flushTimeout,
  }: Omit<Telemetry, 'snapshot' | 'flush' | 'shutdown'> & {
    readonly flushTimeout: number;
  },
): Telemetry => {
  let last = EMPTY_SNAPSHOT;
  let ending: Promise<void> | undefined;

  const collect = async (): Promise<void> => {
    const { resourceMetrics, errors } = await running.collect();
    for (const error of errors) complain('observing a metric', error);
    last = createSnapshot(resourceMetrics);
  };

  const end = async (): Promise<void> => {
    // Ending must not wait for a callback that hangs, nor fail with one that throws.
    const [, ended] = await Promise.allSettled([collect(), running.end()]);
    if (ended.status === 'rejected') throw ended.reason;
  };

  return {
    exporting,
    destination,
    async snapshot() {
      if (!ending) await collect().catch((error) => complain('reading metrics', error));
      return last;
    },
    flush: () => ending ?? within(flushTimeout, 'flush', () => running.flush(flushTimeout)),
    shutdown() {
      ending ??= within(flushTimeout, 'shutdown', end).then(() => running.abandon());
      return ending;
    },
  };
};

/** Telemetry of a process in which nothing was started. */
export const inertTelemetry = (destination: string): Telemetry => ({
  exporting: false,
  destination,
  snapshot: async () => EMPTY_SNAPSHOT,
  flush: async () => {},
  shutdown: async () => {},
});
