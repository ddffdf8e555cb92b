/**
 * @module
 * Entry of `node --import mcp-resilience/register app.js`: starts telemetry from the OTEL_*
 * variables before the application loads, instruments what it imports, and sends what is
 * waiting when it ends. With nothing to export it does nothing but keep metrics readable.
 *
 * The application ends as it would without us:
 * - a signal that it handles is its own; waiting telemetry is sent meanwhile
 * - a signal that it does not handle ends it by that signal, after at most 1.5 s of sending
 * - when it has nothing left to do, telemetry is sent and the exit code stays its own
 *
 * `process.exit()` and an uncaught exception leave no time for sending: what the last interval
 * gathered is lost, unless the application awaits a flush of its own before.
 */
import * as module from 'node:module';
import { constants } from 'node:os';
import { pathToFileURL } from 'node:url';
import { startTelemetry, type Telemetry } from './start.ts';

/** Time for a signal raised again to end the process, in ms. */
const SIGNAL_GRACE = 200;

/** Has modules that the application imports pass through the instrumentations. */
const hookImports = async (): Promise<void> => {
  const require = module.createRequire(import.meta.url);
  const resolveFrom = (name: string, from: string): string =>
    module.createRequire(from).resolve(name);
  const auto = require.resolve('@opentelemetry/auto-instrumentations-node');
  const hook = resolveFrom('@opentelemetry/instrumentation/hook.mjs', auto);
  const syncHooks = resolveFrom('import-in-the-middle/register-hooks.mjs', hook);

  // In the thread of the application where Node can (24.11.1 and later): no second thread to
  // start, and registering takes effect at once.
  const { register, supportsSyncHooks } = (await import(pathToFileURL(syncHooks).href)) as {
    register(): void;
    supportsSyncHooks(): boolean;
  };
  if (supportsSyncHooks()) register();
  else module.register(pathToFileURL(hook).href);
};

const flushAtEnd = (telemetry: Telemetry): void => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const onSignal = async (): Promise<void> => {
      if (process.listenerCount(signal) > 1) return telemetry.flush();
      await telemetry.shutdown();
      process.removeListener(signal, onSignal);
      process.kill(process.pid, signal);
      // The first process of a container is not ended by a signal that it does not handle.
      setTimeout(() => process.exit(128 + constants.signals[signal]), SIGNAL_GRACE);
    };
    process.on(signal, onSignal);
  }
  process.once('beforeExit', () => void telemetry.shutdown());
};

const telemetry = startTelemetry({ application: true });
if (telemetry.exporting) {
  await hookImports();
  flushAtEnd(telemetry);
}
