import type { Requirement } from '../requirements.ts';

/** Pipeline, breaker, retry, timeout, deadline, bulkhead, hedge. */
export const requirements = {} as const satisfies Record<string, Requirement>;
