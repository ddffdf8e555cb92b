/**
 * @module
 * The collector of a drill: takes the server's telemetry over OTLP/HTTP in JSON, keeps it for the
 * verdict, and hands every batch on unchanged to the collector that the environment names, so
 * that dashboards show the drill.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import {
  type Attributes,
  type EventRecord,
  type PointRecord,
  readOtlp,
  type SpanRecord,
} from './drill-otlp.ts';

/** Where batches are handed on to. */
export interface Forwarding {
  /** Base URL, as in `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly endpoint: string;
  /** Sent along with each batch. */
  readonly headers: Readonly<Record<string, string>>;
}

/** One series of a metric, over all of its exports. */
export interface Series {
  readonly name: string;
  readonly attributes: Attributes;
  readonly last: number;
  readonly highest: number;
}

/** A collector that runs. */
export interface Sink {
  readonly url: string;
  /** `black_hole`: requests are taken and never answered. What they bring is kept all the same. */
  mode: 'answer' | 'black_hole';
  readonly spans: readonly SpanRecord[];
  readonly events: readonly EventRecord[];
  series(): readonly Series[];
  /** Ends it; batches on their way to the other collector have 2 s. */
  close(): Promise<void>;
}

const FORWARD_TIMEOUT = 2_000;

/**
 * Reads where telemetry of a drill is handed on to: `OTEL_EXPORTER_OTLP_ENDPOINT` and
 * `OTEL_EXPORTER_OTLP_HEADERS`. Undefined where no endpoint is named.
 *
 * @throws Error when the endpoint is no http or https URL
 */
export const forwardingOf = (env: NodeJS.ProcessEnv): Forwarding | undefined => {
  const endpoint = env.OTEL_EXPORTER_OTLP_ENDPOINT?.trim();
  if (!endpoint) return undefined;
  if (!/^https?:/i.test(endpoint) || !URL.canParse(endpoint)) {
    throw new Error(
      'OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL, such as http://localhost:4318: ' +
        'a drill hands its telemetry on over OTLP/HTTP',
    );
  }
  const pairs = (env.OTEL_EXPORTER_OTLP_HEADERS ?? '')
    .split(',')
    .map((pair) => /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair))
    .flatMap((found) => (found ? [[found[1] ?? '', decode(found[2] ?? '')] as const] : []));
  return { endpoint: endpoint.replace(/\/+$/, ''), headers: Object.fromEntries(pairs) };
};

const decode = (value: string): string => {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
};

const unzip = promisify(gunzip);

/** @param say hears once when batches cannot be handed on */
export const startSink = async (
  say: (line: string) => void,
  forwarding?: Forwarding,
): Promise<Sink> => {
  const spans: SpanRecord[] = [];
  const events: EventRecord[] = [];
  const series = new Map<string, Series>();
  const forwards = new Set<Promise<void>>();
  let complained = false;

  const keep = ({ name, value, attributes }: PointRecord): void => {
    const key = JSON.stringify([name, attributes]);
    const highest = Math.max(series.get(key)?.highest ?? value, value);
    series.set(key, { name, attributes, last: value, highest });
  };

  const forward = async (request: IncomingMessage, body: Buffer<ArrayBuffer>): Promise<void> => {
    if (forwarding === undefined) return;
    const { 'content-type': type = 'application/json', 'content-encoding': encoding } =
      request.headers;
    try {
      const response = await fetch(`${forwarding.endpoint}${request.url}`, {
        method: 'POST',
        headers: {
          ...forwarding.headers,
          'content-type': type,
          ...(encoding && { 'content-encoding': encoding }),
        },
        body,
        signal: AbortSignal.timeout(FORWARD_TIMEOUT),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`it answered ${response.status}`);
    } catch (error) {
      if (complained) return;
      complained = true;
      const { message, cause } = error as Error;
      const why = cause instanceof Error ? cause.message : message;
      say(
        `warning: telemetry could not be handed on to ${new URL(forwarding.endpoint).host}: ${why}`,
      );
    }
  };

  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const raw = Buffer.from(await buffer(request));
    const zipped = request.headers['content-encoding'] === 'gzip';
    const batch = readOtlp(JSON.parse((zipped ? await unzip(raw) : raw).toString()));
    spans.push(...batch.spans);
    events.push(...batch.events);
    for (const point of batch.points) keep(point);
    if (sink.mode === 'black_hole') return;
    response.setHeader('content-type', 'application/json').end('{}');
    const sent = forward(request, raw).finally(() => forwards.delete(sent));
    forwards.add(sent);
  };

  const server = createServer((request, response) => {
    take(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const sink: Sink = {
    url: `http://127.0.0.1:${port}`,
    mode: 'answer',
    spans,
    events,
    series: () => [...series.values()],
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all(forwards);
    },
  };
  return sink;
};
