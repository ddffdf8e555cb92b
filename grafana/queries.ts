/**
 * @module
 * PromQL that several panels share: what they look at, and how they count it.
 */
import { LABEL, ours, type ScrapedName } from './sources.ts';

/** What the variables of a dashboard leave in: services and their instances. */
export const SCOPE = 'job=~"$job", instance=~"$instance"';

/** Of tool calls: the tools chosen, with or without what injected faults caused. */
export const TOOLS = `${SCOPE}, ${LABEL.tool}=~"$tool", ${LABEL.faultInjected}!~"$faults"`;

/** Of gauges of a dependency, which no fault marks. */
export const GAUGES = `${SCOPE}, ${LABEL.dependency}=~"$dependency"`;

/** Of counters of a dependency: as `TOOLS`. */
export const DEPENDENCIES = `${GAUGES}, ${LABEL.faultInjected}!~"$faults"`;

/** Events a second over the interval that fits the zoom. */
export const rate = (series: string, selector: string, by: readonly string[]): string =>
  `sum by (${by.join(', ')}) (rate(${series}{${selector}}[$__rate_interval]))`;

/** Events in the interval that fits the zoom: for what happens now and then. */
export const count = (series: string, selector: string, by: readonly string[]): string =>
  `sum by (${by.join(', ')}) (increase(${series}{${selector}}[$__rate_interval]))`;

/** A percentile of a histogram, over all that is not in `by`. */
export const quantile = (
  q: number,
  bucket: string,
  selector: string,
  by: readonly string[],
): string => `histogram_quantile(${q}, ${rate(bucket, selector, ['le', ...by])})`;

/** Largest value among all that is not in `by`. */
export const worst = (series: string, selector: string, by: readonly string[]): string =>
  `max by (${by.join(', ')}) (${series}{${selector}})`;

/** 0 where a service reports at all, so that a dead one is not taken for one without trouble. */
const zeroIfReporting = `0 * count(${scraped('target_info')}{${SCOPE}})`;

/** A count that is 0 rather than absent while the services report. */
export const orZero = (expr: string): string => `${expr} or ${zeroIfReporting}`;

/** The state of each breaker as a number of `BREAKER_STATES`, the worst of all instances. */
export const breakerStates = (by: readonly string[]): string => {
  const state = (name: string): string =>
    worst(ours('breakerState'), `${GAUGES}, state="${name}"`, [...by, 'instance']);
  return `max by (${by.join(', ')}) (${state('half-open')} + 2 * ${state('open')} + 3 * ${state('isolated')})`;
};

/** The state of each upstream as a number of `UPSTREAM_STATES`, the worst of all instances. */
export const upstreamStates = (by: readonly string[]): string => {
  const state = (name: string): string =>
    worst(ours('upstreamState'), `${SCOPE}, state="${name}"`, [...by, 'instance']);
  return `max by (${by.join(', ')}) (${state('connecting')} + 2 * ${state('degraded')} + 3 * ${state('down')})`;
};

/** A name of a scraped series, checked by the compiler. */
export function scraped(name: ScrapedName): string {
  return name;
}
