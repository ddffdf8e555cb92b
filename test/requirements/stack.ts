import type { Requirement } from '../requirements.ts';

/** The stack: Collector, Jaeger, Prometheus, rules and dashboards. */
export const requirements = {} as const satisfies Record<string, Requirement>;
