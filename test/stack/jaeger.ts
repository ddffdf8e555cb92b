/**
 * @module
 * The HTTP API of Jaeger, as far as tests ask it.
 */

export interface JaegerSpan {
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly name: string;
  readonly service: string;
  readonly tags: Readonly<Record<string, unknown>>;
  readonly events: readonly {
    readonly name: string;
    readonly tags: Readonly<Record<string, unknown>>;
  }[];
}

interface RawTag {
  readonly key: string;
  readonly value: unknown;
}

interface RawTrace {
  readonly traceID: string;
  readonly processes: Readonly<Record<string, { readonly serviceName: string }>>;
  readonly spans: readonly {
    readonly spanID: string;
    readonly operationName: string;
    readonly processID: string;
    readonly references: readonly {
      readonly refType: string;
      readonly spanID: string;
      readonly traceID: string;
    }[];
    readonly tags: readonly RawTag[];
    readonly logs: readonly { readonly fields: readonly RawTag[] }[];
  }[];
}

interface Family {
  readonly name: string;
  readonly metrics: readonly {
    readonly labels: readonly { readonly name: string; readonly value: string }[];
    readonly metricPoints: readonly {
      readonly gaugeValue: { readonly doubleValue: number | string };
    }[];
  }[];
}

const tagsOf = (tags: readonly RawTag[]) =>
  Object.fromEntries(tags.map(({ key, value }) => [key, value]));

const spansOf = ({ spans, processes }: RawTrace): readonly JaegerSpan[] =>
  spans.map((span) => {
    const parent = span.references.find(({ refType }) => refType === 'CHILD_OF');
    return {
      spanId: span.spanID,
      parentId: parent?.spanID,
      name: span.operationName,
      service: processes[span.processID]?.serviceName ?? '',
      tags: tagsOf(span.tags),
      events: span.logs.map(({ fields }) => {
        const { event, ...tags } = tagsOf(fields);
        return { name: String(event), tags };
      }),
    };
  });

/** Asks the Jaeger at a base URL. */
export const jaegerAt = (url: string) => {
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${url}/api/${path}`);
    const text = await response.text();
    if (!response.ok) throw new Error(`Jaeger answered ${response.status} to ${path}: ${text}`);
    return JSON.parse(text) as T;
  };
  return {
    /** Spans of a trace; none when Jaeger does not know it. */
    trace: async (traceId: string): Promise<readonly JaegerSpan[]> => {
      const response = await fetch(`${url}/api/traces/${traceId}`);
      if (response.status === 404) return [];
      const { data } = (await response.json()) as { data: readonly RawTrace[] | null };
      return (data ?? []).flatMap(spansOf);
    },
    /** Traces of a service in the last hour, newest first. */
    find: async (service: string, parameters: Readonly<Record<string, string>> = {}) => {
      const search = new URLSearchParams({ service, limit: '1500', lookback: '1h', ...parameters });
      const { data } = await get<{ data: readonly RawTrace[] | null }>(`traces?${search}`);
      return (data ?? []).map((trace) => ({ traceId: trace.traceID, spans: spansOf(trace) }));
    },
    services: async () => (await get<{ data: readonly string[] | null }>('services')).data ?? [],
    /** What the Monitor tab draws: the last value of each operation of a service. */
    monitor: async (
      metric: 'latencies' | 'calls' | 'errors',
      service: string,
      parameters: Readonly<Record<string, string>> = {},
    ) => {
      const search = new URLSearchParams({
        service,
        groupByOperation: 'true',
        lookback: '600000',
        step: '5000',
        ratePer: '60000',
        spanKind: 'server',
        ...parameters,
      });
      const { metrics } = await get<Family>(`metrics/${metric}?${search}`);
      return metrics.map(({ labels, metricPoints }) => ({
        operation: labels.find(({ name }) => name === 'operation')?.value ?? '',
        values: metricPoints
          .map(({ gaugeValue }) => Number(gaugeValue.doubleValue))
          .filter((value) => !Number.isNaN(value)),
      }));
    },
  };
};

export type Jaeger = ReturnType<typeof jaegerAt>;
