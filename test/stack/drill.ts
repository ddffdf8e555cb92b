/**
 * @module
 * Real drills, whose telemetry goes to the stack.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startProgram } from './processes.ts';
import { CLI } from './server.ts';
import type { Stack } from './stack.ts';

/** The service that is drilled, in a namespace of its own. */
export const DRILLED = { namespace: 'shop', name: 'drilled', job: 'shop/drilled' } as const;

/** What the report of a drill says, as far as it is asked here. */
export interface DrillReport {
  readonly name: string;
  readonly problem?: string;
  readonly expectations: readonly { readonly that: string; readonly value?: number }[];
}

/** Runs `mcp-resilience drill NAME` to its end; resolves with its report. */
export const runDrill = async (stack: Stack, name: string): Promise<DrillReport> => {
  const report = join(stack.folder, `drill-${name}.json`);
  const program = await startProgram({
    name: `drill-${name}`,
    command: process.execPath,
    args: [CLI, 'drill', name, '--json', report],
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: stack.otlp,
      OTEL_SERVICE_NAME: DRILLED.name,
      OTEL_RESOURCE_ATTRIBUTES: `service.namespace=${DRILLED.namespace}`,
    },
    folder: stack.folder,
    // It starts a server itself.
    group: true,
    ready: async () => true,
  });
  stack.adopt(program);
  await program.ended;
  const { drills } = JSON.parse(readFileSync(report, 'utf8')) as { drills: DrillReport[] };
  const [drill] = drills;
  if (drill === undefined) throw new Error(`the drill ${name} has no report:\n${program.log()}`);
  return drill;
};
