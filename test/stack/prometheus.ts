/**
 * @module
 * The HTTP API of Prometheus, as far as tests ask it.
 */

type Labels = Readonly<Record<string, string>>;

/** One series of an answer, with its last value. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** One series over time, without what is not a number. */
export interface Curve {
  readonly labels: Labels;
  readonly values: readonly number[];
}

interface Exemplar {
  readonly traceId: string;
  readonly value: number;
}

interface Alert {
  readonly name: string;
  readonly state: 'pending' | 'firing';
  readonly labels: Labels;
}

interface RawSeries {
  readonly metric: Labels;
  readonly value?: readonly [number, string];
  readonly values?: readonly (readonly [number, string])[];
}

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly name: string;
      readonly type: string;
      readonly health: string;
      readonly lastError?: string;
    }[];
  }[];
}

/** Asks the Prometheus at a base URL. Whatever it refuses is an error with its words. */
export const prometheusAt = (url: string) => {
  const get = async <T>(path: string, parameters: Readonly<Record<string, string>> = {}) => {
    const body = new URLSearchParams(parameters);
    const response = await fetch(`${url}/api/v1/${path}?${body}`);
    const answer = (await response.json()) as { status: string; data: T; error?: string };
    if (answer.status !== 'success') {
      throw new Error(`${answer.error} in ${parameters.query ?? parameters['match[]'] ?? path}`);
    }
    return answer.data;
  };
  const sample = ({ metric, value }: RawSeries): Sample => ({
    labels: metric,
    value: Number(value?.[1]),
  });
  const query = async (expression: string): Promise<readonly Sample[]> => {
    const { result } = await get<{ result: readonly RawSeries[] }>('query', { query: expression });
    return result.map(sample);
  };
  return {
    query,
    /** Value of an expression that gives one series; undefined when it gives none. */
    value: async (expression: string): Promise<number | undefined> => {
      const found = await query(expression);
      if (found.length > 1) throw new Error(`${found.length} series, expected one: ${expression}`);
      return found[0]?.value;
    },
    /** Series over the last `range` seconds, every `step`, without those that are NaN throughout. */
    range: async (expression: string, range: number, step: number): Promise<readonly Curve[]> => {
      const end = Date.now() / 1_000;
      const { result } = await get<{ result: readonly RawSeries[] }>('query_range', {
        query: expression,
        start: String(end - range),
        end: String(end),
        step: String(step),
      });
      return result
        .map(({ metric, values = [] }) => ({
          labels: metric,
          values: values.map(([, value]) => Number(value)).filter((value) => !Number.isNaN(value)),
        }))
        .filter(({ values }) => values.length > 0);
    },
    /** Names of all series that there are. */
    names: () => get<readonly string[]>('label/__name__/values'),
    labelValues: (label: string, match?: string) =>
      get<readonly string[]>(`label/${label}/values`, match ? { 'match[]': match } : {}),
    /** Type and unit of each metric. */
    metadata: () =>
      get<Readonly<Record<string, readonly { readonly type: string; readonly unit: string }[]>>>(
        'metadata',
      ),
    exemplars: async (selector: string): Promise<readonly Exemplar[]> => {
      const now = Date.now() / 1_000;
      const found = await get<
        readonly { exemplars: readonly { labels: Labels; value: string }[] }[]
      >('query_exemplars', { query: selector, start: String(now - 3_600), end: String(now + 60) });
      return found.flatMap(({ exemplars }) =>
        exemplars.map(({ labels, value }) => ({
          traceId: labels.trace_id ?? '',
          value: Number(value),
        })),
      );
    },
    alerts: async (): Promise<readonly Alert[]> => {
      const { alerts } = await get<{
        alerts: readonly { labels: Labels; state: 'pending' | 'firing' }[];
      }>('alerts');
      return alerts.map(({ labels, state }) => ({ name: labels.alertname ?? '', state, labels }));
    },
    /** Rules by name, with what is wrong with them. */
    rules: async () => (await get<Rules>('rules')).groups.flatMap(({ rules }) => rules),
    targets: async () =>
      (
        await get<{
          activeTargets: readonly { labels: Labels; health: string; lastError: string }[];
        }>('targets')
      ).activeTargets,
    ready: async () => (await fetch(`${url}/-/ready`)).ok,
  };
};

export type Prometheus = ReturnType<typeof prometheusAt>;
