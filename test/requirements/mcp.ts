import type { Requirement } from '../requirements.ts';

/** Server, transports, sessions, propagation. */
export const requirements = {} as const satisfies Record<string, Requirement>;
