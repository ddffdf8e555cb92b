/**
 * @module
 * Our server as a process, on the stack, and a client of it that is instrumented itself: its
 * span goes to the Collector too, so that each trace is whole.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { root } from './compose.ts';
import { freePorts, type RunningProgram, startProgram } from './processes.ts';
import type { Stack } from './stack.ts';

/** Name of the service of whoever calls. */
export const CLIENT_SERVICE = 'stack-test-client';

export const CLI = join(root, 'src', 'cli.ts');

/** Telemetry that does not keep a test waiting. */
const quick = (otlp: string): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: otlp,
  OTEL_METRIC_EXPORT_INTERVAL: '1000',
  OTEL_METRIC_EXPORT_TIMEOUT: '900',
  OTEL_BSP_SCHEDULE_DELAY: '200',
  OTEL_BLRP_SCHEDULE_DELAY: '200',
});

export interface ToolAnswer {
  readonly isError?: boolean;
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** Calls a tool; with a trace, as a child of the span that it says the client had. */
export interface Caller {
  call(tool: string, args?: object, trace?: ClientTrace, meta?: object): Promise<ToolAnswer>;
  /** Names of the tools that there are. */
  tools(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** The trace of one call, as an instrumented client starts it. */
export interface ClientTrace {
  readonly traceId: string;
  readonly spanId: string;
  /** Name of the client's span. */
  readonly name: string;
}

export const clientTrace = (name: string): ClientTrace => ({
  traceId: randomBytes(16).toString('hex'),
  spanId: randomBytes(8).toString('hex'),
  name,
});

const nanoseconds = (time: number): string => `${time}000000`;

const resourceOf = (service: string) => ({
  attributes: [{ key: 'service.name', value: { stringValue: service } }],
});

const post = async (otlp: string, signal: 'traces' | 'metrics', body: object): Promise<void> => {
  const response = await fetch(`${otlp}/v1/${signal}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`the Collector answered ${response.status}`);
};

/** Posts spans over OTLP, as an SDK would. */
export const sendSpans = (
  otlp: string,
  spans: readonly object[],
  service = CLIENT_SERVICE,
): Promise<void> =>
  post(otlp, 'traces', {
    resourceSpans: [{ resource: resourceOf(service), scopeSpans: [{ spans }] }],
  });

/** Posts one span: what `span` does not say is that of a call that took a millisecond. */
export const sendSpan = (
  otlp: string,
  { traceId, spanId, name }: ClientTrace,
  span: object = {},
  service?: string,
): Promise<void> => {
  const now = Date.now();
  const time = { startTimeUnixNano: nanoseconds(now - 1), endTimeUnixNano: nanoseconds(now) };
  return sendSpans(otlp, [{ traceId, spanId, name, kind: 3, ...time, ...span }], service);
};

/** A gauge as OTLP has it, with its value as of `time`. */
export const gaugeOf = (name: string, value: number, time = Date.now()): object => ({
  name,
  gauge: { dataPoints: [{ timeUnixNano: nanoseconds(time), asInt: String(value) }] },
});

/** Posts metrics over OTLP in one request, by the name of the service that they are of. */
export const sendMetrics = (
  otlp: string,
  metrics: Readonly<Record<string, readonly object[]>>,
): Promise<void> =>
  post(otlp, 'metrics', {
    resourceMetrics: Object.entries(metrics).map(([service, own]) => ({
      resource: resourceOf(service),
      scopeMetrics: [{ metrics: own }],
    })),
  });

/** Posts one value of a gauge over OTLP, as of `time`. */
export const sendGauge = (
  otlp: string,
  name: string,
  value: number,
  time?: number,
): Promise<void> => sendMetrics(otlp, { [CLIENT_SERVICE]: [gaugeOf(name, value, time)] });

const callerOf = (client: Client, otlp: string, end: () => Promise<void>): Caller => ({
  call: async (name, args = {}, trace, meta) => {
    const startTimeUnixNano = nanoseconds(Date.now());
    const traceparent = trace && `00-${trace.traceId}-${trace.spanId}-01`;
    const _meta = trace && { traceparent, ...meta };
    const result = await client.callTool({
      name,
      arguments: { ...args },
      ...(_meta && { _meta }),
    });
    if (trace) {
      await sendSpan(otlp, trace, { startTimeUnixNano, endTimeUnixNano: nanoseconds(Date.now()) });
    }
    return result as ToolAnswer;
  },
  tools: async () => (await client.listTools()).tools.map(({ name }) => name),
  close: end,
});

export interface StackServer {
  readonly program: RunningProgram;
  readonly url: string;
  connect(): Promise<Caller>;
}

export interface ServerOptions {
  /** Name of the service, of its log and of its configuration file. */
  readonly name: string;
  readonly config: object;
  readonly env?: Readonly<Record<string, string>>;
  /** Default `serve`. */
  readonly command?: 'serve' | 'gateway';
  readonly flags?: readonly string[];
  /** Default: a free one. */
  readonly port?: number;
}

/** Starts a command of ours over HTTP on the stack. */
export const startServer = async (stack: Stack, options: ServerOptions): Promise<StackServer> => {
  const { name, command = 'serve', flags = [] } = options;
  const configFile = join(stack.folder, `${name}.json`);
  writeFileSync(configFile, JSON.stringify(options.config));
  const port = options.port ?? (await freePorts(1))[0] ?? 0;
  const base = `http://127.0.0.1:${port}`;
  const started = await startProgram({
    name,
    command: process.execPath,
    args: [CLI, command, '--http', '--port', String(port), '--config', configFile, ...flags],
    env: { ...quick(stack.otlp), OTEL_SERVICE_NAME: name, ...options.env },
    folder: stack.folder,
    ready: async () => (await fetch(`${base}/healthz`)).ok,
  });
  stack.adopt(started);
  const url = `${base}/mcp`;
  return {
    program: started,
    url,
    connect: async () => {
      const client = new Client({ name: CLIENT_SERVICE, version: '1.0.0' });
      const transport = new StreamableHTTPClientTransport(new URL(url));
      await client.connect(transport as never);
      return callerOf(client, stack.otlp, async () => {
        // As a client that leaves properly: its session ends now.
        await transport.terminateSession();
        await client.close();
      });
    },
  };
};

/** Starts `serve --stdio` as the child of a client. */
export const startOnStdio = async (
  stack: Stack,
  name: string,
  env: Readonly<Record<string, string>>,
): Promise<Caller> => {
  const client = new Client({ name: CLIENT_SERVICE, version: '1.0.0' });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [CLI, 'serve', '--stdio'],
    env: { ...quick(stack.otlp), OTEL_SERVICE_NAME: name, ...env },
    stderr: 'ignore',
  });
  await client.connect(transport);
  return callerOf(client, stack.otlp, () => client.close());
};
