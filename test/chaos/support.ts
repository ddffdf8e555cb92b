import { context, trace } from '@opentelemetry/api';
import { onTestFinished } from 'vitest';
import { type Chaos, type ChaosOptions, createChaos } from '../../src/chaos/chaos.ts';
import { type FaultInput, faultSchema } from '../../src/chaos/fault.ts';
import { asCall } from '../../src/chaos/fault-marks.ts';
import type { ToolContext, ToolResult } from '../../src/mcp/tool.ts';
import { checkResult, invalidInput } from '../../src/mcp/tool-failure.ts';
import type { Work } from '../../src/resilience/attempt.ts';
import { createPipeline, type Pipeline } from '../../src/resilience/pipeline.ts';
import type { PolicySettings } from '../../src/resilience/policy.ts';
import { flush, ManualClock } from '../fixtures/manual-clock.ts';

/** Fault injection on a clock that stands still, until the test ends. */
export const openChaos = (options: Partial<ChaosOptions> & { clock?: ManualClock } = {}) => {
  const clock = options.clock ?? new ManualClock();
  const targets = [
    { tool: 'search', dependency: 'search-api' },
    { tool: 'get_weather', dependency: 'weather-api' },
    { tool: 'plain' },
  ];
  const chaos = createChaos({ targets, ...options, clock });
  onTestFinished(() => chaos.close());
  return { chaos, clock };
};

/** A pipeline that faults can enter. */
export const pipelineOf = (
  { inject }: Chaos,
  clock: ManualClock,
  settings: PolicySettings,
  name = 'search-api',
): Pipeline => {
  const pipeline = createPipeline(name, settings, { clock, inject, random: () => 0.5 });
  onTestFinished(() => pipeline.destroy());
  return pipeline;
};

/** Arms a fault that is written as in the tool's input. */
export const arm = ({ faults }: Chaos, input: FaultInput, gone?: AbortSignal) =>
  faults.arm(faultSchema.parse(input), { by: 'tester', gone });

/** Aimed at the dependency of the pipelines that tests make. */
export const AT_SEARCH = { dependency: 'search-api' } as const;

/** Calls a tool as the server does. */
export const callTool = async (
  chaos: Chaos,
  name: string,
  args: object = {},
  context: Partial<ToolContext> = {},
): Promise<ToolResult> => {
  const tool = chaos.tools.find((candidate) => candidate.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const input = await tool.inputSchema.safeParseAsync(args);
  if (!input.success) return invalidInput(name, input.error);
  const { signal = new AbortController().signal, ...rest } = context;
  return checkResult(tool, await tool.handler(input.data, { signal, progress() {}, ...rest }));
};

/** The structured answer of a tool. */
export const structured = <T>({ structuredContent }: ToolResult): T =>
  structuredContent as unknown as T;

/** Waits for real I/O until something is so; never for a time. */
export const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await flush();
};

/** Work that is counted and answers at once. */
export const counted = () => {
  let executions = 0;
  const work: Work<string> = () => {
    executions += 1;
    return 'done';
  };
  return { work, executions: () => executions };
};

/** Id of the fault that attributes lay something at. */
export const marked = (attributes: object): unknown => {
  const found = attributes as Readonly<Record<string, unknown>>;
  return found['fault.injected'] === true ? found['fault.id'] : undefined;
};

/** Runs something as a call of its own, with a span as the server has one. */
export const serve = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
  const span = trace.getTracer('test').startSpan(name);
  try {
    return await context.with(trace.setSpan(context.active(), span), () => asCall(run));
  } finally {
    span.end();
  }
};
