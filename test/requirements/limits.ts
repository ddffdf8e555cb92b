import type { Requirement } from '../requirements.ts';

/** Rate limiter, bulkhead, adaptive limit, cache, single flight. */
export const requirements = {} as const satisfies Record<string, Requirement>;
