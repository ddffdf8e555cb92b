/**
 * @module
 * What our metrics are called in Prometheus. Dashboards and rules take every name from here, so
 * that a renamed metric cannot leave an empty panel behind.
 *
 * The rules are those of OpenTelemetry ("Prometheus and OpenMetrics compatibility", OTLP to
 * Prometheus), as Prometheus applies them with the translation strategy
 * `UnderscoreEscapingWithSuffixes`, its default.
 */
import type { MetricSpec } from '../src/telemetry/signals.ts';

/** What the name of a series depends on. */
export type NamedMetric = Pick<MetricSpec, 'name' | 'unit' | 'instrument'>;

const UNIT_SUFFIX: Readonly<Record<string, string>> = {
  s: 'seconds',
  ms: 'milliseconds',
  By: 'bytes',
  '1': '',
};

/**
 * Name of a metric in Prometheus, without the `_bucket`, `_sum` and `_count` of a histogram.
 *
 * - Whatever is no letter or digit becomes one underscore, and none stays at either end.
 * - The unit is appended unless the name holds it; annotations in braces are no unit.
 * - A counter ends in `_total`, once. A gauge of unit 1 ends in `_ratio`.
 *
 * @throws Error for a unit whose suffix is not known here
 */
export const prometheusName = ({ name, unit, instrument }: NamedMetric): string => {
  const words = name.split(/[^a-zA-Z0-9:]+/).filter((word) => word !== '');
  const plain = unit.replace(/\{[^}]*\}/g, '');
  const suffix = plain === '' ? '' : UNIT_SUFFIX[plain];
  if (suffix === undefined) {
    throw new Error(`${name}: the suffix of unit "${unit}" is not known; add it to UNIT_SUFFIX`);
  }
  if (suffix !== '' && !words.includes(suffix)) words.push(suffix);
  const ending =
    instrument === 'counter'
      ? 'total'
      : instrument === 'observable gauge' && unit === '1'
        ? 'ratio'
        : undefined;
  const kept = ending === undefined ? words : [...words.filter((word) => word !== ending), ending];
  const joined = kept.join('_');
  return /^\d/.test(joined) ? `_${joined}` : joined;
};

/** Label of an attribute: whatever a label may not hold becomes an underscore. */
export const prometheusLabel = (attribute: string): string =>
  attribute.replace(/[^a-zA-Z0-9]+/g, '_');
